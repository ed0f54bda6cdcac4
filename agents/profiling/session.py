"""One profile of one running replica: windows at its whole share and at less or more, by turns.

What is measured is work that a step always costs the same of, so that its rate is the pace: busy
time of the GPUs that the replica holds, else its CPU time. A replica that was never stopped at its
quota had all that it wanted, and its pace is whole whatever the rates say; unless it waited for
cores that others used, which tells nothing.

A program that waits by spinning uses CPU time without getting on. Where it is held back it seems to
lose as much as it is held back, which is the most it can lose: such an error gives it more CPUs
than it needs, never fewer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from agents.drivers.base import Strain
from agents.profiling.amounts import less, more, next_amount
from agents.protocol import Profile, ProfilePoint

SETTLE = 0.15
"""Part of a window that passes unmeasured after a change."""
LOOKS = 8
"""How often within a window the devices are looked at."""
STEADY = 0.2
"""Two windows at the whole share that differ by more say nothing about what lies between."""
TRIES = 3
HELD_BACK = 0.02
"""Part of the periods below which a replica counts as not held back."""
CROWDED = 0.1
"""Part of the time it wants to run, and CPUs, that it may wait for cores that others use."""
HUNGRY = 0.8
"""Part of its share that a replica must use before it is tried with more."""
IDLE_DEVICE = 0.02
"""Devices less busy than this tell nothing: the CPU time does."""


class DisturbedError(Exception):
    """Something else is wanted of the replica, or it ended: the measuring was broken off."""


class UnsteadyError(Exception):
    """The replica's pace changes too much by itself."""


class Bench(Protocol):
    """The replica under measurement, as its agent can handle it."""

    async def give(self, cpus: float) -> None:
        """Hold it to so many CPUs."""

    async def look(self) -> Strain:
        """Read its counters."""

    async def busy(self) -> float | None:
        """How busy its devices are now; ``None`` where CPU time tells."""

    async def wait(self, seconds: float) -> None:
        """Let it run. Raises ``DisturbedError``."""

    async def spare(self) -> float:
        """CPUs of the node that nobody uses now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What a replica did in some seconds with some CPUs."""

    cpus: float
    used: float
    """CPUs."""
    busy: float | None
    held_back: float
    waited: float
    """CPUs that it would have used besides, had there been a core; at its quota or beyond it."""

    @property
    def crowded(self) -> bool:
        """Whether others on the node, not its quota, kept it from running."""
        if self.held_back >= HELD_BACK or self.used >= (1 - CROWDED) * self.cpus:
            return False
        return self.waited > max(CROWDED * (self.used + self.waited), CROWDED * self.cpus)


async def measure(
    bench: Bench, *, number: int, share: float, most: float, window_s: float, storage: float
) -> Profile:
    """Measure it; the CPUs that it had are given back by the caller, whatever happens.

    ``most`` is how many CPUs it may be tried with. Raises ``DisturbedError``, ``UnsteadyError``.
    """
    session = _Session(bench, share, window_s)
    began = await bench.look()
    await session.begin()
    await session.climb(less(share))
    whole = session.whole
    if whole.held_back > HELD_BACK or whole.used >= HUNGRY * share:
        await session.climb(more(share, min(most, share + await bench.spare())))
    ended = await bench.look()
    return Profile(
        number=number,
        at=time.time(),
        seconds=round(ended.at - began.at, 3),
        source=session.source,
        share=share,
        points=session.points(),
        cached=ended.cached,
        read=session.read,
        storage=storage,
    )


class _Session:
    def __init__(self, bench: Bench, share: float, window_s: float) -> None:
        self._bench = bench
        self._share = share
        self._window_s = window_s
        self._windows: dict[float, Window] = {}
        self._paces = {share: 1.0}
        self.source = "cpu"
        self.read = 0.0
        """Bytes a second at the whole share."""

    @property
    def whole(self) -> Window:
        """The last window at the whole share."""
        return self._windows[self._share]

    async def begin(self) -> None:
        """Measure the whole share once, and see by what its pace can be told."""
        window = await self._measure(self._share, reading=True)
        if window.busy is not None and window.busy > IDLE_DEVICE:
            self.source = "device"

    async def climb(self, amounts: list[float]) -> None:
        """Measure the amounts that tell something."""
        while (amount := next_amount(self._paces, amounts)) is not None:
            self._paces[amount] = await self._pace(amount)

    async def _pace(self, amount: float) -> float:
        """The pace with this amount, between two windows at the whole share that agree."""
        crowded = False
        for _ in range(TRIES):
            first = self.whole
            window = await self._measure(amount)
            last = await self._measure(self._share)
            if crowded := first.crowded or window.crowded or last.crowded:
                continue
            content = max(first.used, last.used) <= amount and window.held_back < HELD_BACK
            if content and amount < self._share:
                return 1.0
            before, after = self._rate(first), self._rate(last)
            if abs(before - after) <= STEADY * max(before, after):
                ratio = self._rate(window) / ((before + after) / 2) if before + after > 0 else 1.0
                return min(1.0, ratio) if amount < self._share else max(1.0, ratio)
        if crowded:
            raise UnsteadyError(
                "Others used the node's CPUs that it wanted, so nothing can be told."
            )
        raise UnsteadyError(
            f"Its pace changed by more than {STEADY:.0%} by itself, {TRIES} times in a row."
        )

    def _rate(self, window: Window) -> float:
        if self.source == "device" and window.busy is not None:
            return window.busy
        return window.used

    async def _measure(self, cpus: float, *, reading: bool = False) -> Window:
        bench = self._bench
        await bench.give(cpus)
        await bench.wait(SETTLE * self._window_s)
        before, busy = await bench.look(), []
        for _ in range(LOOKS):
            await bench.wait(self._window_s / LOOKS)
            busy.append(await bench.busy())
        after = await bench.look()
        seconds = max(1e-6, after.at - before.at)
        if reading and before.read is not None and after.read is not None:
            self.read = max(0.0, (after.read - before.read) / seconds)
        told = [one for one in busy if one is not None]
        periods = after.periods - before.periods
        window = Window(
            cpus=cpus,
            used=max(0.0, after.cpu_s - before.cpu_s) / seconds,
            busy=sum(told) / len(told) if len(told) == LOOKS else None,
            held_back=(after.held_back - before.held_back) / periods if periods > 0 else 0.0,
            waited=max(0.0, (after.waited_s or 0.0) - (before.waited_s or 0.0)) / seconds,
        )
        self._windows[cpus] = window
        return window

    def points(self) -> list[ProfilePoint]:
        """What was measured, rising; more CPUs never make it slower than fewer did."""
        points, best = [], 0.0
        for cpus in sorted(self._paces):
            window = self._windows[cpus]
            best = max(best, self._paces[cpus])
            points.append(
                ProfilePoint(
                    cpus=cpus,
                    pace=round(best, 4),
                    used=round(window.used, 3),
                    held_back=round(window.held_back, 3),
                )
            )
        return points
