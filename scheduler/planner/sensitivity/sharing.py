"""Splitting the CPUs and memory of nodes among the jobs that hold their GPUs.

A job keeps its GPUs; only the host resources beside them are re-split. ``tune`` is in its own file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.planner.sensitivity.matrix import Matrix, Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A node's GPUs, CPUs and memory (bytes)."""

    id: str
    gpus: int
    cpus: float
    memory: float

    @property
    def proportional(self) -> Point:
        """What each of its GPUs gets when all are treated alike."""
        return Point(self.cpus / self.gpus, self.memory / self.gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job, or the part of it on one node, that wants a share of one host."""

    id: str
    gpus: int
    matrix: Matrix | None = None
    """``None``: it was not profiled; it gets the proportional share."""
    host: str | None = None
    """Where it already is; ``None``: wherever it fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What a task was given for each of its GPUs, where, and the pace it makes there."""

    host: str
    given: Point
    pace: float


Allocator = Callable[[Sequence[Task], Sequence[Host]], Mapping[str, Slice]]
"""Tasks that are missing in the answer do not run."""


class Room:
    """What is left of one host while an allocation is made."""

    __slots__ = ("cpus", "gpus", "host", "memory", "tasks")

    def __init__(self, host: Host) -> None:
        self.host = host
        self.gpus = host.gpus
        self.cpus = host.cpus
        self.memory = host.memory
        self.tasks: dict[str, tuple[Task, Point]] = {}

    def fits(self, task: Task, wanted: Point) -> bool:
        """Whether the task can have ``wanted`` for each of its GPUs here."""
        return (
            task.gpus <= self.gpus
            and task.gpus * wanted.cpus <= self.cpus + 1e-6
            and task.gpus * wanted.memory <= self.memory + 1e-3
        )

    def give(self, task: Task, point: Point) -> None:
        """Let the task have ``point`` for each of its GPUs."""
        self.gpus -= task.gpus
        self.cpus -= task.gpus * point.cpus
        self.memory -= task.gpus * point.memory
        self.tasks[task.id] = (task, point)

    def take(self, id_: str) -> Task:
        """Take back what a task was given."""
        task, point = self.tasks.pop(id_)
        self.gpus += task.gpus
        self.cpus += task.gpus * point.cpus
        self.memory += task.gpus * point.memory
        return task

    def slices(self) -> Iterable[tuple[str, Slice]]:
        """What each task here was given."""
        for id_, (task, point) in self.tasks.items():
            pace = task.matrix.pace(point) if task.matrix else 1.0
            yield id_, Slice(host=self.host.id, given=point, pace=pace)


def rooms(hosts: Sequence[Host]) -> list[Room]:
    """Empty rooms, in the order of the hosts."""
    return [Room(host) for host in hosts]


def open_to(task: Task, among: Sequence[Room]) -> list[Room]:
    """Where the task may go, fullest first, so that large gaps stay."""
    where = [room for room in among if task.host in (None, room.host.id)]
    return sorted(where, key=lambda room: (room.gpus, room.cpus, room.memory, room.host.id))


def wish(task: Task, host: Host) -> Point:
    """What the task asks for on a host: its best point, or the proportional share."""
    return task.matrix.best() if task.matrix else host.proportional


def answer(among: Iterable[Room]) -> dict[str, Slice]:
    """All slices by task."""
    return {id_: slice_ for room in among for id_, slice_ in room.slices()}


def proportional(tasks: Sequence[Task], hosts: Sequence[Host]) -> dict[str, Slice]:
    """Every GPU gets the same share of its node: what other schedulers do."""
    among = rooms(hosts)
    for task in _largest_first(tasks):
        for room in open_to(task, among):
            if room.fits(task, room.host.proportional):
                room.give(task, room.host.proportional)
                break
    return answer(among)


def greedy(tasks: Sequence[Task], hosts: Sequence[Host]) -> dict[str, Slice]:
    """Everyone gets what they ask for or does not run: fast for some, and GPUs are left idle."""
    among = rooms(hosts)
    for task in tasks:
        for room in open_to(task, among):
            if room.fits(task, wish(task, room.host)):
                room.give(task, wish(task, room.host))
                break
    return answer(among)


def _largest_first(tasks: Sequence[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: -task.gpus)
