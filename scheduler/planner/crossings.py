"""When running jobs come above what they were promised, or fall below it.

Then time alone changes who may ask whom. Between two such moments it does not.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from scheduler.planner.needs import held_devices
from scheduler.planner.snapshot import Job, JobId

SLACK_S = 1.0
"""How long before and after a moment it counts as happening, so that rounding plays no part."""
FLAT = 1e-6
"""A fraction that moves more slowly than this never arrives anywhere."""

Entry = tuple[float, JobId]


class Crossings:
    """The moments at which the GPU fraction of running jobs crosses a level."""

    def __init__(self) -> None:
        self._fresh: dict[JobId, tuple[Job, float, float]] = {}
        """What came since it was last asked: nothing is worked out for one who never asks."""
        self._at: dict[JobId, Entry] = {}
        self._heap: list[Entry] = []

    def note(self, job: Job, level: float, now: float) -> None:
        """Take in a running job, or what is new about it."""
        self._fresh[job.id] = (job, level, now)

    def forget(self, id_: JobId) -> None:
        """Leave out a job."""
        self._fresh.pop(id_, None)
        self._at.pop(id_, None)

    def passed(self, now: float) -> bool:
        """Whether one is happening now, or happened since this was last asked."""
        if self._fresh:
            self._take_in()
        heap, found = self._heap, False
        while heap and heap[0][0] - SLACK_S <= now:
            entry = heap[0]
            if self._at.get(entry[1]) is entry:
                found = True
                if entry[0] + SLACK_S >= now:
                    break
                del self._at[entry[1]]
            heappop(heap)
        return found

    def _take_in(self) -> None:
        for id_, (job, level, now) in self._fresh.items():
            at = crossing(job, level, now)
            if at is None or at + SLACK_S < now:
                self._at.pop(id_, None)
                continue
            entry = self._at[id_] = (at, id_)
            heappush(self._heap, entry)
        self._fresh.clear()
        if len(self._heap) > 64 + 4 * len(self._at):
            self._heap = list(self._at.values())
            heapify(self._heap)


def crossing(job: Job, level: float, now: float) -> float | None:
    """When a running job's fraction is at ``level`` if it goes on as it does; ``None``: never."""
    since = now if job.measured_at is None else job.measured_at
    kept = job.measured_at is not None
    gain = held_devices(job) if kept else 0
    if job.entitled > 0:
        due, rate = job.entitled, job.devices if kept else 0
    else:
        due, rate = (since - job.submitted_at) * job.devices, job.devices
    slope = gain - level * rate
    if abs(slope) <= FLAT:
        return None
    return since + (level * due - job.delivered) / slope
