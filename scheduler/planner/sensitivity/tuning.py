"""Synergy's TUNE: ask for the best, fall back to the proportional share, take surplus from peers.

Nobody runs slower than with the proportional share, and no GPU is left idle for want of CPUs.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.planner.sensitivity.matrix import Point
from scheduler.planner.sensitivity.sharing import (
    Host,
    Room,
    Slice,
    Task,
    answer,
    open_to,
    rooms,
    wish,
)


def tune(tasks: Sequence[Task], hosts: Sequence[Host]) -> dict[str, Slice]:
    """Split the hosts among the tasks.

    1. The most demanding first, each goes where its wish fits; if that asks for more of something
       than the proportional share, and fits nowhere, it makes do with the proportional share.
    2. If even that does not fit, peers who hold more than their share fall back to it, one by one.
    3. What is left over goes, point by point, to whoever gains most by it.
    """
    among = _admitted(tasks, hosts)
    for room in among:
        _top_up(room)
    return answer(among)


def tune_as_published(tasks: Sequence[Task], hosts: Sequence[Host]) -> dict[str, Slice]:
    """The first two steps only: what nobody asked for stays idle."""
    return answer(_admitted(tasks, hosts))


def _admitted(tasks: Sequence[Task], hosts: Sequence[Host]) -> list[Room]:
    among = rooms(hosts)
    for task in sorted(tasks, key=lambda task: _demand(task, hosts), reverse=True):
        _admit(task, among)
    return among


def _demand(task: Task, hosts: Sequence[Host]) -> tuple[int, float, float]:
    asked = wish(task, hosts[0])
    return task.gpus, asked.cpus, asked.memory


def _admit(task: Task, among: Sequence[Room]) -> None:
    for room in open_to(task, among):
        if room.fits(task, wish(task, room.host)):
            room.give(task, wish(task, room.host))
            return
    for room in open_to(task, among):
        modest = _modest(task, room.host)
        if room.fits(task, modest):
            room.give(task, modest)
            return
    for room in open_to(task, among):
        if task.gpus <= room.gpus and _reclaim(task, room):
            return


def _modest(task: Task, host: Host) -> Point:
    """The proportional share, or less where the wish is for less."""
    asked, share = wish(task, host), host.proportional
    least = Point(min(asked.cpus, share.cpus), min(asked.memory, share.memory))
    if task.matrix is None or task.matrix.pace(least) >= task.matrix.pace(share):
        return least
    return share


def _reclaim(task: Task, room: Room) -> bool:
    """Let peers fall back to their share, the greatest surplus first, until the task fits."""
    share = room.host.proportional
    rich = sorted(
        room.tasks.items(),
        key=lambda item: (
            -item[1][0].gpus * max(item[1][1].cpus - share.cpus, 0),
            -item[1][0].gpus * max(item[1][1].memory - share.memory, 0),
            item[0],
        ),
    )
    modest = _modest(task, room.host)
    for id_, (peer, point) in rich:
        if point.cpus > share.cpus or point.memory > share.memory:
            room.take(id_)
            room.give(peer, _modest(peer, room.host))
            if room.fits(task, modest):
                room.give(task, modest)
                return True
    return False


def _top_up(room: Room) -> None:
    """Hand out what is left where each step brings most pace for its part of the host."""
    while (better := _best_step(room)) is not None:
        id_, point = better
        room.give(room.take(id_), point)


def _best_step(room: Room) -> tuple[str, Point] | None:
    best: tuple[float, str, Point] | None = None
    for id_, (task, point) in room.tasks.items():
        if task.matrix is None:
            continue
        pace = task.matrix.pace(point)
        for other, faster in task.matrix.points():
            more = Point(max(other.cpus, point.cpus), max(other.memory, point.memory))
            cpus, memory = more.cpus - point.cpus, more.memory - point.memory
            if faster <= pace or not _affords(room, task, cpus, memory):
                continue
            price = cpus / room.host.cpus + memory / room.host.memory
            rate = (faster - pace) / max(price, 1e-12)
            if best is None or (rate, id_) > (best[0], best[1]):
                best = (rate, id_, more)
    return best and (best[1], best[2])


def _affords(room: Room, task: Task, cpus: float, memory: float) -> bool:
    return task.gpus * cpus <= room.cpus + 1e-6 and task.gpus * memory <= room.memory + 1e-3
