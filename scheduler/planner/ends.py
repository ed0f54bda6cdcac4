"""When running jobs are expected to end, in order, kept while jobs come and go."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from scheduler.planner.ledger import NEVER, Held
from scheduler.planner.promises import ends_at

MANY = 64
"""After so many changes between two looks sorting anew is cheaper."""

Entry = tuple[float, int, str, Held]


class Ends:
    """Expected ends by device kind. Jobs whose end nobody knows are left out."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Entry]] = {}
        self._sorted: dict[str, list[Entry]] = {}
        self._vague: dict[str, dict[str, Held]] = {}
        """Jobs whose measures have no moment of their own: they are true now, whenever that is."""
        self._changes = 0

    def note(self, held: Held) -> None:
        """Take in a running job, or what is new about it."""
        job = held.job
        if job.expected_s is None or job.measured_at is None:
            self.forget(held)
            if job.expected_s is not None:
                self._vague.setdefault(held.kind, {})[job.id] = held
            return
        # As `ends_at` says at the moment of the measures, without asking again what it holds.
        left = max(0.0, job.expected_s - job.worked_s) * job.devices
        entry = (job.measured_at + left / max(1, held.count), len(job.id), job.id, held)
        known = self._known.setdefault(held.kind, {})
        old = known.get(job.id)
        if old is not None:
            if old[0] == entry[0] and old[3] is held:
                return
            self.forget(held)
        elif self._vague:
            self.forget(held)
        known[job.id] = entry
        if (ordered := self._ordered(held.kind)) is not None:
            insort(ordered, entry, key=_key)

    def forget(self, held: Held) -> None:
        """Leave out a job."""
        self._vague.get(held.kind, {}).pop(held.job.id, None)
        entry = self._known.get(held.kind, {}).pop(held.job.id, None)
        if entry is not None and (ordered := self._ordered(held.kind)) is not None:
            del ordered[bisect_left(ordered, _key(entry), key=_key)]

    def in_order(self, kind: str, now: float) -> Iterator[tuple[float, Held]]:
        """The ends of a kind, the next first; who is over time ends now."""
        self._changes = 0
        if kind not in self._sorted:
            self._sorted[kind] = sorted(self._known.get(kind, {}).values(), key=_key)
        entries: Iterable[Entry] = self._sorted[kind]
        if vague := self._vague.get(kind):
            late = [(ends_at(one.job, now), len(id_), id_, one) for id_, one in vague.items()]
            entries = sorted([*entries, *late], key=_key)
        for end, _, _, held in entries:
            if end < NEVER:
                yield max(now, end), held

    def _ordered(self, kind: str) -> list[Entry] | None:
        self._changes += 1
        if self._changes > MANY:
            self._sorted.clear()
        return self._sorted.get(kind)


def _key(entry: Entry) -> tuple[float, int, str]:
    return entry[:3]
