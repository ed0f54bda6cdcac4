"""Splitting many hosts whose tasks stay where they are: each by itself, and only after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.planner.sensitivity.sharing import Allocator, Host, Slice, Task


class Splits:
    """The split of each host, remembered for as long as the same tasks are on it."""

    def __init__(self, hosts: Sequence[Host], allocate: Allocator) -> None:
        self._hosts = hosts
        self._allocate = allocate
        self._known: dict[str, tuple[tuple[str, ...], Mapping[str, Slice]]] = {}

    def of(self, tasks: Sequence[Task]) -> dict[str, Slice]:
        """What each task gets of its own host."""
        here: dict[str, list[Task]] = {}
        for task in tasks:
            here.setdefault(task.host or "", []).append(task)
        slices: dict[str, Slice] = {}
        for host in self._hosts:
            members = here.get(host.id, [])
            key = tuple(f"{task.id} {task.gpus}" for task in members)
            known = self._known.get(host.id)
            if known is None or known[0] != key:
                known = self._known[host.id] = (key, self._allocate(members, [host]))
            slices.update(known[1])
        return slices
