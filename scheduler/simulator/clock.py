"""What happens when: a heap of events whose ties keep the order in which they were set."""

from __future__ import annotations

import heapq
from enum import IntEnum


class What(IntEnum):
    """Kinds of events; at one moment the lower ones happen first."""

    END = 0
    """A job has done its work."""
    LEFT = 1
    """A job has left its devices and waits again."""
    ARRIVED = 2
    """A job starts to compute on its devices."""
    BACK = 3
    """A node is back."""
    AWAY = 4
    """A node goes away."""


Event = tuple[float, int, int, int, int]
"""Moment, kind, order, subject (a job's or an outage's number), turn of the job."""


class Clock:
    """The present moment and what is to come."""

    __slots__ = ("_count", "_heap", "now")

    def __init__(self, now: float) -> None:
        self.now = now
        self._heap: list[Event] = []
        self._count = 0

    def set(self, at: float, what: What, subject: int, turn: int = 0) -> None:
        """Let something happen at a moment, not before now."""
        self._count += 1
        heapq.heappush(self._heap, (max(at, self.now), what, self._count, subject, turn))

    @property
    def next_at(self) -> float:
        """The moment of the next event; infinite when there is none."""
        return self._heap[0][0] if self._heap else float("inf")

    def pop(self) -> Event:
        """Take the next event; the caller moves ``now``."""
        return heapq.heappop(self._heap)
