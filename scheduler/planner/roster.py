"""A list of jobs of which few change between snapshots, and which can say which ones did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from scheduler.planner.snapshot import Job, JobId


class Roster(Sequence["Job"]):
    """An immutable sequence of jobs; making the next version costs only what changes.

    Only the newest version owns the table. An older one keeps the way to the next and what was
    there before (Baker's trick), so it still reads the same, only slowly.
    """

    __slots__ = ("_before", "_next", "_table")

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._table: dict[JobId, Job] | None = {job.id: job for job in jobs}
        self._next: Roster | None = None
        self._before: tuple[tuple[JobId, Job | None], ...] = ()

    def changed(self, jobs: Iterable[Job] = (), gone: Iterable[JobId] = ()) -> Roster:
        """The next version, with ``jobs`` added or replaced and those of ``gone`` left out."""
        table = self._table if self._table is not None else dict(self._read())
        before: list[tuple[JobId, Job | None]] = []
        for id_ in gone:
            before.append((id_, table.pop(id_, None)))
        for job in jobs:
            before.append((job.id, table.get(job.id)))
            table[job.id] = job
        new = Roster.__new__(Roster)
        new._table, new._next, new._before = table, None, ()
        if self._table is not None:
            self._table, self._next, self._before = None, new, tuple(before)
        return new

    def since(self, older: Roster) -> dict[JobId, Job | None] | None:
        """What changed from ``older`` to this (``None``: gone), or ``None`` if not its descendant.

        Answers only for the newest version.
        """
        if self._table is None:
            return None
        changes: dict[JobId, Job | None] = {}
        version: Roster | None = older
        while version is not None and version is not self:
            for id_, _ in version._before:
                changes[id_] = self._table.get(id_)
            version = version._next
        return changes if version is self else None

    def own(self) -> None:
        """Be the newest version again: what came after it was only tried."""
        if self._table is not None:
            return
        chain = self._following()
        table = chain[-1]._table
        assert table is not None
        for version in reversed(chain[:-1]):
            back: list[tuple[JobId, Job | None]] = []
            for id_, job in reversed(version._before):
                back.append((id_, table.pop(id_, None)))
                if job is not None:
                    table[id_] = job
            after = version._next
            assert after is not None
            after._table, after._next, after._before = None, version, tuple(back)
            version._table, version._next, version._before = table, None, ()

    def get(self, id_: JobId) -> Job | None:
        """The job with this id, if there is one."""
        return self._read().get(id_)

    def _read(self) -> dict[JobId, Job]:
        if self._table is not None:
            return self._table
        chain = self._following()
        newest = chain.pop()._table
        assert newest is not None
        table = dict(newest)
        for version in reversed(chain):
            for id_, job in reversed(version._before):
                if job is None:
                    table.pop(id_, None)
                else:
                    table[id_] = job
        return table

    def _following(self) -> list[Roster]:
        """This version and those after it, up to the one that owns the table."""
        chain: list[Roster] = [self]
        while (following := chain[-1]._next) is not None:
            chain.append(following)
        return chain

    def __len__(self) -> int:
        return len(self._read())

    def __iter__(self) -> Iterator[Job]:
        return iter(self._read().values())

    def __contains__(self, job: object) -> bool:
        return any(job == one for one in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> Job: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Job]: ...
    def __getitem__(self, index: int | slice) -> Job | Sequence[Job]:
        return tuple(self._read().values())[index]
