"""How many CPUs each running replica is held to: `allot`, the host resources' part of the plan.

Only CPUs are split on a real fleet. A job's memory limit stays what it asked for: to take memory
from a process that runs can end it, which no gain is worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from scheduler.planner.policy import Policy, Sharing
from scheduler.planner.sensitivity.hosts import Splits
from scheduler.planner.sensitivity.matrix import Matrix
from scheduler.planner.sensitivity.sharing import Allocator, Host, Task, proportional
from scheduler.planner.sensitivity.tuning import tune
from scheduler.planner.snapshot import Job, JobId, Node, Phase, Seat, Snapshot

ALLOCATORS: Mapping[Sharing, Allocator] = {
    Sharing.PROPORTIONAL: proportional,
    Sharing.TUNE: tune,
}
"""``greedy`` is for simulations only: whoever does not fit would not run."""


class _Part(NamedTuple):
    """What a job has on one node."""

    job: Job
    seats: tuple[Seat, ...]
    devices: int

    @property
    def id(self) -> str:
        return f"{self.job.id}@{self.seats[0].node}"


def allot(snapshot: Snapshot, policy: Policy) -> dict[JobId, dict[int, float]]:
    """CPUs of each replica by rank, for the jobs that sit on nodes whose CPUs are shared.

    Pure. Who is not named has what its devices bring or what it asked for: so have all when
    sharing is off, and always those who asked for CPUs, which are set aside for them. With
    ``Sharing.TUNE`` nobody runs slower than with the proportional share, as far as was measured,
    and nobody is left less than ``policy.least_share`` of it. Idle devices' CPUs are lent until a
    job sits there.
    """
    allocate = ALLOCATORS.get(policy.sharing)
    if allocate is None:
        return {}
    parts = _parts(snapshot.jobs)
    found: dict[JobId, dict[int, float]] = {}
    for node in snapshot.nodes:
        here = parts.get(node.id, [])
        if node.lost or not here:
            continue
        host = _host(node, [part for part in here if part.job.cpus_per_replica > 0])
        sharing = [part for part in here if part.job.cpus_per_replica <= 0]
        if host is None or not sharing:
            continue
        tasks = [_task(part, host, policy) for part in sharing]
        slices = Splits([host], allocate).of(tasks)
        for part in sharing:
            given = slices[part.id].given if part.id in slices else host.proportional
            each = round(given.cpus * part.devices / len(part.seats), 3)
            found.setdefault(part.job.id, {}).update((seat.rank, each) for seat in part.seats)
    return found


def _parts(jobs: Iterable[Job]) -> dict[str, list[_Part]]:
    """By node, those that sit on it, in the order of the jobs."""
    found: dict[str, list[_Part]] = {}
    for job in jobs:
        by_node: dict[str, list[Seat]] = {}
        for seat in job.seats:
            by_node.setdefault(seat.node, []).append(seat)
        for node, seats in by_node.items():
            devices = len({device for seat in seats for device in seat.devices})
            if devices:
                found.setdefault(node, []).append(_Part(job, tuple(seats), devices))
    return found


def _host(node: Node, asked: Iterable[_Part]) -> Host | None:
    """What is left of a node beside those who asked for CPUs; ``None`` when nothing is."""
    gpus, cpus = len(node.devices), node.cpus
    for part in asked:
        gpus -= part.devices
        cpus -= part.job.cpus_per_replica * len(part.seats)
    if gpus <= 0 or cpus <= 0:
        return None
    return Host(id=node.id, gpus=gpus, cpus=cpus, memory=1.0)


def _task(part: _Part, host: Host, policy: Policy) -> Task:
    """A part as the allocators know it; only what runs at full size goes by what was measured."""
    job, matrix = part.job, None
    full = part.devices == job.gpus_per_replica * len(part.seats)
    if policy.sharing is Sharing.TUNE and job.phase is Phase.RUNNING and full and job.matrix:
        matrix = cpus_only(job.matrix, host.proportional.cpus, policy.least_share)
    return Task(id=part.id, gpus=part.devices, matrix=matrix, host=host.id)


def cpus_only(matrix: Matrix, share: float, least: float) -> Matrix | None:
    """The paces with all memory, from ``least`` of the share up.

    ``None`` where nothing was measured that tells of the share.
    """
    paces = {cpus: max(row) for cpus, row in zip(matrix.cpus, matrix.paces, strict=True)}
    floor = least * share
    below = [cpus for cpus in paces if cpus <= floor]
    kept = {cpus: pace for cpus, pace in paces.items() if cpus > floor}
    if below:
        kept[floor] = paces[max(below)]
    if not any(cpus <= share + 1e-9 for cpus in kept):
        return None
    cpus = tuple(sorted(kept))
    return Matrix(cpus=cpus, memory=(0.0,), paces=tuple((kept[c],) for c in cpus))
