"""The fleet over time: exact integrals, and a few hundred samples for the figures."""

from __future__ import annotations

from dataclasses import dataclass

SAMPLES = 600
"""Samples are thinned out when there are twice as many."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The fleet at one moment, counts of devices and jobs."""

    at: float
    capacity: int
    used: int
    computing: float
    idle_in_part: int
    waiting: int
    wanted: int
    """Devices that the waiting jobs want."""


class Chronicle:
    """Device-seconds by use since the start."""

    __slots__ = (
        "_every",
        "_next",
        "_start",
        "blocked",
        "capacity",
        "computing",
        "contention",
        "idle_in_part",
        "loaded",
        "now",
        "samples",
        "used",
    )

    def __init__(self, start: float) -> None:
        self._start = start
        self._every = 1.0
        self._next = start
        self.now = start
        self.capacity = 0.0
        self.used = 0.0
        self.computing = 0.0
        """Device-seconds in which work was done, at the pace it was done at."""
        self.idle_in_part = 0.0
        self.blocked = 0.0
        """Device-seconds that were idle although at least so many were wanted."""
        self.contention = 0.0
        """Seconds, each as often as there were askers for a device (at least once)."""
        self.loaded: tuple[float, float] = (0.0, 0.0)
        """Work and capacity up to the last arrival: what comes after is only running empty."""
        self.samples: list[Sample] = []

    def pass_to(
        self,
        at: float,
        capacity: int,
        used: int,
        computing: float,
        idle_in_part: int,
        waiting: int,
        wanted: int,
    ) -> None:
        """Let time pass until ``at`` in this state; see ``Sample`` for the words."""
        passed = at - self.now
        self.capacity += passed * capacity
        self.used += passed * used
        self.computing += passed * computing
        self.idle_in_part += passed * idle_in_part
        asked = used + wanted
        self.contention += passed * (asked / capacity if asked > capacity > 0 else 1.0)
        if wanted and used < capacity:
            self.blocked += passed * min(capacity - used, wanted)
        if at >= self._next:
            self._sample(
                Sample(self.now, capacity, used, computing, idle_in_part, waiting, wanted), at
            )
        self.now = at

    def skip_to(self, at: float) -> None:
        """Let time pass that counts for nothing: nobody runs and nobody will."""
        self.now = at

    def _sample(self, present: Sample, at: float) -> None:
        self.samples.append(present)
        if len(self.samples) >= 2 * SAMPLES:
            self.samples = self.samples[::2]
            span = at - self._start
            self._every = max(2 * self._every, span / SAMPLES)
        self._next = at + self._every
