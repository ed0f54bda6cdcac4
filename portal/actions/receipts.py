"""Receipts of interruptions: opened when a job is asked to leave, closed when it computes again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db.models import QuerySet

from portal.choices import MoveKind, Remedy
from portal.events import MoveEvent, publish_on_commit
from portal.models import Job, Move, Placement, User
from scheduler.planner import MoveCost

LEAVING = ("gate", "freeze", "device", "dump", "store")
TRAVELLING = ("fetch",)
RETURNING = ("launch", "prepare", "network", "restore", "resume")
STOPPED = ("left_at", "stopped_at", "phases", "bytes_raw", "bytes_new", "bytes_stored")
"""What is written on a receipt when the job has left."""
RECEIPTS = 5
"""Of a job's receipts so many tell what moving it costs, the last ones."""


def closed_moves() -> QuerySet[Move]:
    """Receipts of moves that kept the step and are complete."""
    moves = Move.objects.filter(remedy=Remedy.TRANSPARENT, called_off="")
    return moves.exclude(resumed_at=None)


def learned_cost(phases: Sequence[Mapping[str, float]]) -> MoveCost | None:
    """What moving a job has cost so far: the mean of the phases of its last receipts."""
    if not phases:
        return None

    def mean(names: Iterable[str]) -> float:
        return sum(sum(of_one.get(n, 0.0) for n in names) for of_one in phases) / len(phases)

    return MoveCost(
        checkpoint_s=mean(LEAVING),
        transfer_s=mean(TRAVELLING),
        restore_s=mean(RETURNING),
        samples=len(phases),
    )


def cost_of(job: Job) -> MoveCost | None:
    """What moving one job has cost so far; ``None`` until it was moved."""
    last = closed_moves().filter(job=job).order_by("-began_at")[:RECEIPTS]
    return learned_cost(list(last.values_list("phases", flat=True)))


def open_receipt(
    job: Job,
    placement: Placement,
    kind: MoveKind,
    now: datetime,
    *,
    reason: str = "",
    sentence: str = "",
    asked_by: User | None = None,
    beneficiary: int | None = None,
) -> Move:
    """Begin the receipt of one interruption."""
    return Move.objects.create(
        job=job,
        kind=kind,
        remedy=job.remedy,
        reason=reason,
        sentence=sentence,
        asked_by=asked_by,
        beneficiary_id=beneficiary,
        from_nodes=nodes_of(placement),
        from_devices=placement.devices,
        began_at=now,
    )


def nodes_of(placement: Placement) -> list[str]:
    """Names of the nodes of a placement, by rank, each once."""
    seats = sorted(placement.replicas.all(), key=lambda replica: replica.rank)
    return list(dict.fromkeys(seat.node.name for seat in seats))


def present_receipt(job: Job) -> Move | None:
    """The receipt of the interruption that is under way."""
    return job.receipts.filter(resumed_at=None, called_off="").order_by("-id").first()


def tell(job: Job) -> None:
    publish_on_commit(MoveEvent(kind="move", job=job.id), f"job.{job.id}")


def note_stopped(job: Job, placement: Placement, now: datetime) -> None:
    """Write down when the job ceased to compute and what its checkpoint cost."""
    move = present_receipt(job)
    if move is None:
        return
    move.left_at = now
    if move.kind in (MoveKind.RECOVER, MoveKind.RETRY):
        # Nothing was stored: what the replicas tell of that is from an earlier checkpoint.
        move.save()
        tell(job)
        return
    replicas = list(placement.replicas.all())
    stops = [replica.stopped_at for replica in replicas if replica.stopped_at]
    move.stopped_at = min(stops) if stops else now.timestamp()
    move.phases = slowest(replica.phases for replica in replicas)
    move.bytes_raw = sum(replica.bytes_raw for replica in replicas)
    move.bytes_new = sum(replica.bytes_new for replica in replicas)
    move.bytes_stored = sum(replica.bytes_stored for replica in replicas)
    move.save(update_fields=STOPPED)
    tell(job)


def note_resumed(job: Job, placement: Placement, now: datetime) -> None:
    """Close the receipt: the job computes again."""
    move = present_receipt(job)
    if move is None:
        return
    replicas = list(placement.replicas.all())
    starts = [replica.started_at for replica in replicas if replica.started_at]
    resumed = max(starts) if starts else now.timestamp()
    if move.stopped_at is None:
        move.stopped_at = resumed
    move.resumed_at = max(resumed, move.stopped_at)
    move.phases = {**slowest(replica.phases for replica in replicas), **move.phases}
    move.to_nodes = nodes_of(placement)
    move.to_devices = placement.devices
    move.save()
    tell(job)


def call_off_receipt(job: Job, why: str) -> None:
    """Say on the receipt why nothing came of it."""
    job.receipts.filter(resumed_at=None, called_off="").update(called_off=why)
    tell(job)


def slowest(phases: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """For each phase the seconds of the slowest replica."""
    longest: dict[str, float] = {}
    for of_one in phases:
        for name, seconds in of_one.items():
            longest[name] = max(longest.get(name, 0.0), float(seconds))
    return longest
