"""Bringing a job to devices: placements made, held until others have left, and set going."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from agents.protocol import State, Want
from portal.actions.accounting import account
from portal.actions.checkpoints import newest_checkpoint
from portal.actions.locking import locked_job
from portal.actions.output import output_size
from portal.actions.verdicts import judge
from portal.choices import JobState, PlacementState, Then
from portal.events import job_changed, placed, renew, wake
from portal.models import Device, Job, Node, PlacedReplica, Placement

log = logging.getLogger(__name__)

Seats = Sequence[tuple[int, int, Sequence[str]]]
"""(rank, node id, device ids on that node) of each replica."""

PRESENT = (PlacementState.ACTIVE, PlacementState.PARKED)


def present_placement(job: Job) -> Placement | None:
    """Where the job is now: its active or parked placement."""
    return job.placements.filter(state__in=PRESENT).first()


def held_placement(job: Job) -> Placement | None:
    """Where the job goes next, once others have left."""
    return job.placements.filter(state=PlacementState.HELD).first()


def place(job: Job, seats: Seats, now: datetime) -> Placement:
    """Promise these seats to a job, whose row is locked; it starts there as soon as they are free.

    The job takes them at a higher epoch. A job that waits is started at once if it can be.
    """
    job.epoch += 1
    sharing: dict[tuple[int, str], int] = defaultdict(int)
    for _, node, devices in seats:
        for device in devices:
            sharing[node, device] += 1
    placement = Placement.objects.create(
        job=job,
        epoch=job.epoch,
        state=PlacementState.HELD,
        want_since=now,
        created_at=now,
        hold=len(seats) > 1,
        devices=len(sharing),
    )
    PlacedReplica.objects.bulk_create(
        PlacedReplica(
            placement=placement,
            rank=rank,
            node_id=node,
            devices=list(devices),
            sharers=max((sharing[node, device] for device in devices), default=1),
        )
        for rank, node, devices in seats
    )
    job.save(update_fields=["epoch"])
    if job.state == JobState.WAITING:
        activate(job, placement, now)
    return placement


def activate(job: Job, placement: Placement, now: datetime) -> bool:
    """Set a held placement going if its devices are free. Its job's row is locked."""
    if placement.state != PlacementState.HELD or blockers(placement):
        return False
    parked = present_placement(job)
    if parked is not None and parked.state != PlacementState.PARKED:
        return False
    account(job, now)
    nodes = list(Node.objects.filter(replicas__placement=placement).distinct())
    if parked is None:
        _begin(job, placement)
    else:
        _return_to(parked, placement)
        placement = parked
    placement.state = PlacementState.ACTIVE
    placement.want = Want.RUNNING
    placement.want_since = now
    placement.then = Then.STAY
    placement.save()
    verdict = judge(nodes, replicas=job.replicas, on_gpus=_on_gpus(placement))
    job.remedy, job.verdict = verdict.remedy, verdict.reason
    job.state = JobState.STARTING
    job.move_asked, job.wanted_nodes = False, []
    job.save()
    renew(node.id for node in nodes)
    placed(node.name for node in nodes)
    job_changed(job)
    return True


def _begin(job: Job, placement: Placement) -> None:
    placement.checkpoint = newest_checkpoint(job)
    for replica in placement.replicas.all():
        replica.output_from = output_size(job.id, replica.rank)
        replica.save(update_fields=["output_from"])


def _return_to(parked: Placement, held: Placement) -> None:
    """A job frozen in place goes on as it is: only its devices are those newly promised."""
    promised = {replica.rank: replica for replica in held.replicas.all()}
    for replica in parked.replicas.all():
        replica.devices = promised[replica.rank].devices
        replica.sharers = promised[replica.rank].sharers
        replica.save(update_fields=["devices", "sharers"])
    parked.devices = held.devices
    held.delete()


def _on_gpus(placement: Placement) -> bool:
    nodes = placement.replicas.values_list("node_id", flat=True)
    used = {device for replica in placement.replicas.all() for device in replica.devices}
    kinds = Device.objects.filter(node_id__in=nodes, uid__in=used).values_list("kind", flat=True)
    return any(kind not in ("cpu", "fake") for kind in kinds)


def blockers(held: Placement) -> list[Placement]:
    """Placements of other jobs that still hold a device that this one was promised."""
    wanted = {(r.node_id, d) for r in held.replicas.all() for d in r.devices}
    nodes = {node for node, _ in wanted}
    others = (
        Placement.objects.filter(state=PlacementState.ACTIVE, replicas__node_id__in=nodes)
        .exclude(job_id=held.job_id)
        .distinct()
        .prefetch_related("replicas")
    )
    return [
        other
        for other in others
        if not released(other)
        and any((r.node_id, d) in wanted for r in other.replicas.all() for d in r.devices)
    ]


def released(placement: Placement) -> bool:
    """Whether nothing of it computes any more, so that its devices may be used by others."""
    return all(
        replica.state in (State.EXITED, State.ABSENT) for replica in placement.replicas.all()
    )


def activate_held(now: datetime | None = None) -> None:
    """Set going every held placement whose devices have become free; drop those in vain.

    Each in a transaction of its own. A promise is dropped when a job that was to leave stays.
    """
    now = now or timezone.now()
    for id in Placement.objects.filter(state=PlacementState.HELD).values_list("job_id", flat=True):
        with locked_job(id) as job:
            held = held_placement(job)
            if held is None:
                continue
            if job.state == JobState.WAITING:
                activate(job, held, now)
                held = held_placement(job)
            if held is not None and _in_vain(held):
                drop_held(job)
                wake()


def _in_vain(held: Placement) -> bool:
    return any(
        blocker.want == Want.RUNNING and not blocker.then and blocker.running_at is not None
        for blocker in blockers(held)
    )


def drop_held(job: Job) -> None:
    """Take back what was promised to a job."""
    job.placements.filter(state=PlacementState.HELD).delete()


def end_placement(job: Job, placement: Placement, now: datetime) -> None:
    """Give the seats back; the agents remove what is still there."""
    placement.state = PlacementState.ENDED
    placement.ended_at = now
    placement.save()
    seats = list(placement.replicas.select_related("node"))
    renew(seat.node_id for seat in seats)
    placed(seat.node.name for seat in seats)
    transaction.on_commit(activate_held)
    wake()


def by_rank(placement: Placement) -> Mapping[int, PlacedReplica]:
    return {replica.rank: replica for replica in placement.replicas.all()}


def want(placement: Placement, wanted: Want, now: datetime) -> None:
    """Change what is wanted of a placement's replicas, and tell their nodes."""
    placement.want = wanted
    placement.want_since = now
    placement.save()
    if wanted in (Want.FROZEN, Want.STORED):
        # An error of an earlier checkpoint says nothing about the next one.
        placement.replicas.exclude(error="").update(error="", detail="")
    renew(nodes_in(placement.replicas.all()))


def nodes_in(replicas: Iterable[PlacedReplica]) -> list[int]:
    return [replica.node_id for replica in replicas]
