"""Bringing a job to devices: placements made, held until others have left, and set going."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db.models import prefetch_related_objects
from django.utils import timezone

from agents.protocol import State, Want
from portal.actions.accounting import standing
from portal.actions.checkpoints import discard_checkpoint, newest_checkpoints
from portal.actions.locking import locked_job
from portal.actions.output import output_size
from portal.actions.verdicts import judge
from portal.choices import JobState, PlacementState, Then
from portal.events import job_changed, placed, renew, wake, wake_if_awaited
from portal.models import Checkpoint, Job, Node, PlacedReplica, Placement
from portal.unit import after_commit

log = logging.getLogger(__name__)

Seats = Sequence[tuple[int, int, Sequence[str]]]
"""(rank, node id, device ids on that node) of each replica."""

GOING = ("checkpoint", "state", "want", "want_since", "then", "devices")
"""What changes of a placement when it is set going."""
PRESENT = (PlacementState.ACTIVE, PlacementState.PARKED)


def present_placement(job: Job) -> Placement | None:
    """Where the job is now: its active or parked placement."""
    return next((p for p in standing(job) if p.state in PRESENT), None)


def held_placement(job: Job) -> Placement | None:
    """Where the job goes next, once others have left."""
    return next((p for p in standing(job) if p.state == PlacementState.HELD), None)


def place(job: Job, seats: Seats, now: datetime) -> None:
    """Promise these seats to a job, whose row is locked; it starts there as soon as they are free.

    The job takes them at a higher epoch. A job that waits is started at once if it can be.
    """
    place_all([(job, seats)], now)


def place_all(wishes: Sequence[tuple[Job, Seats]], now: datetime) -> None:
    """Promise seats to jobs, whose rows are locked, in as many queries for many as for one."""
    fresh = [(job, *_promise(job, seats, now)) for job, seats in wishes]
    Placement.objects.bulk_create(placement for _, placement, _ in fresh)
    PlacedReplica.objects.bulk_create(replica for *_, replicas in fresh for replica in replicas)
    waiting = []
    for job, placement, _ in fresh:
        if "standing" in vars(job):
            job.standing.append(placement)
        if job.state == JobState.WAITING:
            waiting.append((job, placement))
    begun = activate_all(waiting, now)
    late = [(job, replicas) for job, _, replicas in fresh if job not in begun]
    for job, _ in late:
        job.save(update_fields=["epoch"])
    # The nodes of those that must wait may fetch ahead what the job has stored so far.
    renew(replica.node_id for _, replicas in late for replica in replicas)


def _promise(job: Job, seats: Seats, now: datetime) -> tuple[Placement, list[PlacedReplica]]:
    job.epoch += 1
    sharing: dict[tuple[int, str], int] = defaultdict(int)
    for _, node, devices in seats:
        for device in devices:
            sharing[node, device] += 1
    placement = Placement(
        job=job,
        epoch=job.epoch,
        state=PlacementState.HELD,
        want_since=now,
        created_at=now,
        hold=len(seats) > 1,
        devices=len(sharing),
    )
    return placement, [
        PlacedReplica(
            placement=placement,
            rank=rank,
            node_id=node,
            devices=list(devices),
            sharers=max((sharing[node, device] for device in devices), default=1),
        )
        for rank, node, devices in seats
    ]


def activate(job: Job, placement: Placement, now: datetime) -> bool:
    """Set a held placement going if its devices are free. Its job's row is locked."""
    return bool(activate_all([(job, placement)], now))


def activate_all(wishes: Sequence[tuple[Job, Placement]], now: datetime) -> list[Job]:
    """Set held placements going whose devices are free, and answer their jobs."""
    held = [(job, placement) for job, placement in wishes if _may_begin(job, placement)]
    if not held:
        return []
    prefetch_related_objects([placement for _, placement in held], "replicas")
    nodes = Node.objects.prefetch_related("devices").in_bulk(
        {replica.node_id for _, placement in held for replica in placement.replicas.all()}
    )
    busy = _busy_devices(nodes)
    images = newest_checkpoints(job for job, _ in held if job.epoch > 1)
    begun, going = [], []
    for job, placement in held:
        if not _blocked(placement, busy):
            going.append(_set_going(job, placement, nodes, images.get(job.id), now))
            _add_holder(busy, going[-1])
            begun.append(job)
    Placement.objects.bulk_update(going, GOING)
    return begun


def _may_begin(job: Job, placement: Placement) -> bool:
    present = present_placement(job)
    return placement.state == PlacementState.HELD and (
        present is None or present.state == PlacementState.PARKED
    )


def _set_going(
    job: Job,
    placement: Placement,
    nodes: Mapping[int, Node],
    image: Checkpoint | None,
    now: datetime,
) -> Placement:
    """Answer the placement that it runs in from now on, to be saved."""
    parked = present_placement(job)
    if parked is None:
        _begin(job, placement, image)
    else:
        _return_to(job, parked, placement)
        placement = parked
    placement.state = PlacementState.ACTIVE
    placement.want = Want.RUNNING
    placement.want_since = now
    placement.then = Then.STAY
    here = {replica.node_id: nodes[replica.node_id] for replica in placement.replicas.all()}
    verdict = judge(
        here.values(), replicas=job.replicas, on_gpus=_on_gpus(placement.replicas.all(), here)
    )
    job.remedy, job.verdict = verdict.remedy, verdict.reason
    job.state = JobState.STARTING
    job.move_asked, job.wanted_nodes = False, []
    job.save()
    renew(here)
    placed(node.name for node in here.values())
    job_changed(job)
    return placement


def _begin(job: Job, placement: Placement, image: Checkpoint | None) -> None:
    placement.checkpoint = image
    resumed = []
    for replica in placement.replicas.all():
        if written := output_size(job.id, replica.rank):
            replica.output_from = written
            resumed.append(replica)
    PlacedReplica.objects.bulk_update(resumed, ["output_from"])


def _return_to(job: Job, parked: Placement, held: Placement) -> None:
    """A job frozen in place goes on as it is: only its devices are those newly promised."""
    promised = {replica.rank: replica for replica in held.replicas.all()}
    for replica in parked.replicas.all():
        replica.devices = promised[replica.rank].devices
        replica.sharers = promised[replica.rank].sharers
        replica.save(update_fields=["devices", "sharers"])
    parked.devices = held.devices
    _forget(job, held)


def _on_gpus(replicas: Iterable[PlacedReplica], nodes: Mapping[int, Node]) -> bool:
    used = {(replica.node_id, device) for replica in replicas for device in replica.devices}
    return any(
        device.kind not in ("cpu", "fake")
        for node in nodes.values()
        for device in node.devices.all()
        if (node.id, device.uid) in used
    )


Busy = defaultdict[tuple[int, str], list[Placement]]
"""Who holds each device, by node and device."""


def _busy_devices(nodes: Iterable[int]) -> Busy:
    """The active placements that still hold a device on one of these nodes."""
    holders = (
        Placement.objects.filter(state=PlacementState.ACTIVE, replicas__node_id__in=list(nodes))
        .distinct()
        .order_by()
        .prefetch_related("replicas")
    )
    busy: Busy = defaultdict(list)
    for holder in holders:
        if not released(holder):
            _add_holder(busy, holder)
    return busy


def _add_holder(busy: Busy, holder: Placement) -> None:
    for replica in holder.replicas.all():
        for device in replica.devices:
            busy[replica.node_id, device].append(holder)


def _blocked(held: Placement, busy: Busy) -> list[Placement]:
    """Placements of other jobs that still hold a device that this one was promised."""
    return [
        other
        for replica in held.replicas.all()
        for device in replica.devices
        for other in busy.get((replica.node_id, device), ())
        if other.job_id != held.job_id
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
    rows = Placement.objects.filter(state=PlacementState.HELD)
    waiting = list(rows.select_related("job").prefetch_related("replicas"))
    if not waiting:
        return
    busy = _busy_devices({seat.node_id for held in waiting for seat in held.replicas.all()})
    for row in waiting:
        blocked = _blocked(row, busy)
        if _in_vain(blocked) or (row.job.state == JobState.WAITING and not blocked):
            _try_again(row.job_id, now)


def _try_again(id: int, now: datetime) -> None:
    with locked_job(id) as job:
        held = held_placement(job)
        if held is None or (job.state == JobState.WAITING and activate(job, held, now)):
            return
        if _in_vain(_blocked(held, _busy_devices(nodes_in(held.replicas.all())))):
            drop_held(job)
            wake()


def _in_vain(blocked: Iterable[Placement]) -> bool:
    """Whether one of those that hold its devices stays."""
    return any(
        blocker.want == Want.RUNNING and not blocker.then and blocker.running_at is not None
        for blocker in blocked
    )


def drop_held(job: Job) -> None:
    """Take back what was promised to a job."""
    held = held_placement(job)
    if held is not None:
        _forget(job, held)


def _forget(job: Job, placement: Placement) -> None:
    placement.delete()
    if "standing" in vars(job):
        job.standing.remove(placement)


def end_placement(job: Job, placement: Placement, now: datetime) -> None:
    """Give the seats back; the agents remove what is still there."""
    discard_checkpoint(placement, "The job had lost its place before all of it was stored.")
    placement.state = PlacementState.ENDED
    placement.ended_at = now
    placement.save()
    seats = placement.replicas.all()
    renew(seat.node_id for seat in seats)
    placed(seat.node.name for seat in seats)
    after_commit(activate_held)
    wake_if_awaited()


def want(placement: Placement, wanted: Want, now: datetime) -> None:
    """Change what is wanted of a placement's replicas, and tell their nodes."""
    placement.want = wanted
    placement.want_since = now
    placement.save()
    if wanted in (Want.FROZEN, Want.STORED):
        # An error of an earlier checkpoint says nothing about the next one.
        for replica in placement.replicas.all():
            if replica.error:
                replica.error = replica.detail = ""
                replica.save(update_fields=["error", "detail"])
    renew(nodes_in(placement.replicas.all()))


def nodes_in(replicas: Iterable[PlacedReplica]) -> list[int]:
    return [replica.node_id for replica in replicas]
