"""The node's lease: how long it may go on without the portal, and the heartbeat that its guard
reads.

Time here is seconds since the machine's boot, sleep included (``CLOCK_BOOTTIME``): the same for
every process, never set back. A lease counts from when the ping was *sent*: the portal renewed it
no earlier than that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

FREEZE_AT = 0.6
"""Part of the lease after which the agent freezes its replicas."""
GUARD_AT = 0.8
"""Part of the lease after which the guard does it, should the agent be dead."""


def uptime() -> float:
    """Seconds since boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """Renewed by the portal's answers; runs out without them. ``file`` is what the guard reads."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.seconds = 0.0
        self.contact = 0.0
        self._read()

    def _read(self) -> None:
        """Go on with the lease that this agent held before it was restarted, in the same boot."""
        try:
            contact, seconds = (float(word) for word in self.file.read_text().split()[:2])
        except (OSError, ValueError):
            return
        if contact <= uptime():
            self.contact, self.seconds = contact, seconds

    def renew(self, sent_at: float, seconds: float | None = None) -> None:
        """The portal answered what was sent at ``sent_at``."""
        self.contact = max(self.contact, sent_at)
        self.seconds = self.seconds if seconds is None else seconds
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{self.contact:.3f} {self.seconds:.3f}\n")
        fresh.replace(self.file)

    @property
    def freeze_at(self) -> float:
        """When replicas must be frozen; never, before the first lease."""
        return self.contact + FREEZE_AT * self.seconds if self.seconds else float("inf")

    async def watch(self, lapsed: Callable[[], None]) -> None:
        """Call ``lapsed`` each time the lease has run down, until cancelled."""
        told = -1.0
        while True:
            left = self.freeze_at - uptime()
            if left <= 0 and told < self.contact:
                told = self.contact
                lapsed()
            await asyncio.sleep(min(max(left, 0.05), 0.5))
