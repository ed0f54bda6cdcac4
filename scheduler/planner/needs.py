"""What a job needs of the fleet: its shape, the sizes it may have, the nodes that suit it."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.planner.snapshot import Job, NodeId, Phase, Remedy, Seat


class Size(NamedTuple):
    """One legal size: ``groups`` sets of ``each`` devices, each shared by ``share`` replicas."""

    devices: int
    groups: int
    each: int
    share: int


class Need(NamedTuple):
    """All that decides which devices suit a job, besides how many."""

    kind: str
    device_memory: int
    partition: str
    milli: int
    """Thousandths of a CPU per replica."""
    memory: int
    """Host memory per replica, bytes."""
    restore: bool
    """Whether it must land where checkpoints of others can be restored."""
    only: frozenset[NodeId] = frozenset()
    avoid: frozenset[NodeId] = frozenset()


def natural(id_: str) -> tuple[int, str]:
    """Sorts ids that end in a number by that number, padded or not."""
    return (len(id_), id_)


def sizes(job: Job) -> tuple[Size, ...]:
    """Every legal size, largest first; a rigid job has one."""
    return _sizes(max(1, job.replicas), max(1, job.gpus_per_replica), job.fewest_devices)


_KNOWN: dict[tuple[int, int, int | None], tuple[Size, ...]] = {}


def _sizes(replicas: int, each: int, fewest: int | None) -> tuple[Size, ...]:
    key = (replicas, each, fewest)
    found = _KNOWN.get(key)
    if found is None:
        least = replicas * each if fewest is None else min(fewest, replicas * each)
        found = tuple(
            Size(groups * each, groups, each, replicas // groups)
            for groups in range(replicas, 0, -1)
            if replicas % groups == 0 and groups * each >= least
        )
        _KNOWN[key] = found
    return found


def need_of(job: Job) -> Need:
    """What the devices of ``job`` must be like when it is placed or moved."""
    leaves_image = job.has_image or job.phase is not Phase.WAITING
    return Need(
        job.device_kind,
        job.device_memory,
        job.partition,
        round(job.cpus_per_replica * 1000),
        job.memory_per_replica,
        leaves_image and job.remedy is Remedy.TRANSPARENT,
        frozenset(),
        job.avoid_nodes,
    )


def held_devices(job: Job, seats: tuple[Seat, ...] | None = None) -> int:
    """Distinct devices that a job holds; without seats (a counted pool) its full size."""
    seats = job.seats if seats is None else seats
    if not seats:
        return job.devices
    if len(seats) == 1:
        return len(seats[0].devices)
    return len({(seat.node, device) for seat in seats for device in seat.devices})
