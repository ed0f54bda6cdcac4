"""Rows into the planner's snapshot, in a fixed number of queries whatever the fleet's size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Prefetch, Q, Sum

from agents.protocol import State, Want
from portal.actions.accounting import decayed
from portal.actions.placing import released
from portal.choices import ENDED_STATES, CheckpointState, JobState, PlacementState
from portal.choices import Remedy as RemedyChoice
from portal.gains import matrix_of
from portal.models import (
    Checkpoint,
    Device,
    Job,
    Move,
    Node,
    PlacedReplica,
    Placement,
    Profile,
    Promise,
    Tenant,
    Tier,
)
from scheduler import planner
from scheduler.live.naming import device_id, job_id, job_row
from scheduler.planner.promises import worked
from scheduler.planner.sensitivity import Matrix

PROMISE_WINDOW = timedelta(days=7)


def observe(now: datetime) -> planner.Snapshot:
    """The fleet as its rows tell it at ``now``."""
    placements = _placements()
    nodes = tuple(_nodes())
    return planner.Snapshot(
        now=now.timestamp(),
        nodes=nodes,
        jobs=tuple(_measured(_jobs(placements, now), nodes)),
        tenants=tuple(_tenants(now, {device.kind for node in nodes for device in node.devices})),
        tiers=tuple(_tier(tier) for tier in Tier.objects.all()),
        moved_at=tuple(_moved_at(now)),
    )


def _measured(jobs: Iterable[planner.Job], nodes: Iterable[planner.Node]) -> Iterable[planner.Job]:
    """With what those that run gain from CPUs, where it was measured on such devices."""
    matrices = _matrices()
    kinds = (
        {device.id: device.kind for node in nodes for device in node.devices} if matrices else {}
    )
    for job in jobs:
        found = None
        if job.phase is planner.Phase.RUNNING and (of_job := matrices.get(job_row(job.id))):
            found = of_job.get(kinds.get(job.seats[0].devices[0], ""))
        yield replace(job, matrix=found) if found else job


def _nodes() -> Iterable[planner.Node]:
    rows = Node.objects.exclude(heard_at=None).prefetch_related("devices", "partitions")
    for row in rows.order_by("id"):
        yield planner.Node(
            id=planner.NodeId(row.name),
            devices=tuple(_device(row, device) for device in row.devices.all()),
            cpus=row.cpus,
            memory=row.memory,
            rack=row.rack,
            cluster=row.cluster,
            region=row.region,
            partitions=frozenset(partition.slug for partition in row.partitions.all()),
            cordoned=row.cordoned,
            draining=row.draining,
            lost=row.lost_at is not None,
            can_restore=row.able("migrate"),
            can_run_together=row.able("network"),
        )


def _device(node: Node, row: Device) -> planner.Device:
    return planner.Device(
        id=device_id(node.name, row.uid), kind=row.kind, memory=row.memory, sick=bool(row.sick)
    )


def _tier(row: Tier) -> planner.Tier:
    return planner.Tier(
        id=planner.TierId(row.slug),
        rank=row.rank,
        promise=row.promise,
        preemptible=row.preemptible,
    )


def _tenants(now: datetime, kinds: Collection[str]) -> Iterable[planner.Tenant]:
    rows = Tenant.objects.select_related("parent").prefetch_related("quotas").order_by("id")
    for row in rows:
        yield planner.Tenant(
            id=planner.TenantId(row.slug),
            parent=planner.TenantId(row.parent.slug) if row.parent else None,
            weight=row.weight,
            usage=decayed(row, now),
            quotas=_quotas(row, kinds),
        )


def _quotas(tenant: Tenant, kinds: Collection[str]) -> dict[str, planner.Quota]:
    """By kind; a quota without one is what holds for every kind that has none of its own."""
    named = {
        row.device_kind: planner.Quota(reserved=row.reserved, borrow=row.borrow, lend=row.lend)
        for row in tenant.quotas.all()
    }
    common = named.pop("", None)
    return named if common is None else dict.fromkeys(sorted(kinds), common) | named


def _placements() -> dict[int, list[Placement]]:
    """The placements that are not ended, of each job, the present one before the held one."""
    rows = (
        Placement.objects.exclude(state=PlacementState.ENDED)
        .prefetch_related(
            Prefetch("replicas", PlacedReplica.objects.select_related("node").order_by("rank"))
        )
        .order_by("epoch")
    )
    by_job: dict[int, list[Placement]] = defaultdict(list)
    for row in rows:
        by_job[row.job_id].append(row)
    return by_job


def _jobs(placements: dict[int, list[Placement]], now: datetime) -> Iterable[planner.Job]:
    of_interest = ~Q(state__in=[*ENDED_STATES, JobState.PAUSED]) | Q(id__in=list(placements))
    rows = Job.objects.filter(of_interest).select_related("tenant", "tier", "partition")
    imaged = set(
        Checkpoint.objects.filter(
            state=CheckpointState.COMMITTED, collected=False, job__in=rows.values("id")
        ).values_list("job_id", flat=True)
    )
    costs = _costs(rows)
    promises = _promises(now)
    for row in rows.order_by("submitted_at", "id"):
        seated = placements.get(row.id, [])
        if (row.ended or row.state == JobState.PAUSED) and not _holding(seated):
            continue
        yield _job(
            row, seated, costs.get(row.id), promises.get(row.id), now, has_image=row.id in imaged
        )


def _holding(placements: list[Placement]) -> list[Placement]:
    return [p for p in placements if p.state != PlacementState.PARKED and not released(p)]


def _phase(row: Job, placements: list[Placement], now: datetime) -> planner.Phase:
    holding = _holding(placements)
    if row.state == JobState.WAITING and not holding:
        return planner.Phase.WAITING
    undisturbed = (
        row.state == JobState.RUNNING
        and len(placements) == 1
        and placements[0].want == Want.RUNNING
        and not row.pause_asked
        and not (row.untouchable_until and row.untouchable_until > now)
        and all(replica.state == State.RUNNING for replica in placements[0].replicas.all())
    )
    return planner.Phase.RUNNING if undisturbed else planner.Phase.MOVING


def _avoided(row: Job, now: datetime) -> frozenset[planner.NodeId]:
    """Nodes that failed to start it not long ago."""
    until = row.avoid_nodes.items()
    return frozenset(planner.NodeId(name) for name, end in until if end > now.timestamp())


def _seats(placements: Iterable[Placement]) -> tuple[planner.Seat, ...]:
    return tuple(
        planner.Seat(
            rank=replica.rank,
            node=planner.NodeId(replica.node.name),
            devices=tuple(device_id(replica.node.name, uid) for uid in replica.devices),
        )
        for placement in placements
        for replica in placement.replicas.all()
    )


def _job(
    row: Job,
    placements: list[Placement],
    cost: planner.MoveCost | None,
    promise: tuple[float, float] | None,
    now: datetime,
    *,
    has_image: bool,
) -> planner.Job:
    delivered, entitled = promise or (row.delivered, row.entitled)
    remedy = planner.Remedy(row.remedy)
    measured_at = row.accounted_at or row.submitted_at
    seen = planner.Job(
        id=job_id(row.id),
        tenant=planner.TenantId(row.tenant.slug),
        tier=planner.TierId(row.tier.slug),
        phase=_phase(row, placements, now),
        submitted_at=row.submitted_at.timestamp(),
        replicas=row.replicas,
        gpus_per_replica=row.gpus_per_replica,
        fewest_devices=row.fewest_devices,
        device_kind=row.device_kind,
        device_memory=row.device_memory,
        cpus_per_replica=row.cpus_per_replica,
        memory_per_replica=row.memory_per_replica,
        partition=row.partition.slug if row.partition else "",
        remedy=remedy,
        seats=_seats(_holding(placements)),
        kept_on=_seats(p for p in placements if p.state == PlacementState.PARKED),
        wanted_nodes=frozenset(planner.NodeId(name) for name in row.wanted_nodes),
        avoid_nodes=_avoided(row, now),
        move_asked=row.move_asked,
        asked_devices=row.asked_devices,
        has_image=has_image,
        waiting_since=(row.waiting_since or row.submitted_at).timestamp(),
        started_at=row.running_since.timestamp() if row.running_since else None,
        last_moved_at=row.last_moved_at.timestamp() if row.last_moved_at else None,
        moves=row.moves,
        expected_s=row.expected_s,
        worked_s=row.worked_s,
        measured_at=measured_at.timestamp(),
        delivered=delivered,
        entitled=entitled,
        cost=cost,
    )
    if remedy == planner.Remedy.REQUEUE:
        return replace(seen, at_stake_s=worked(seen, now.timestamp()))
    return seen


LEAVING = ("gate", "freeze", "device", "dump", "store")
RETURNING = ("launch", "prepare", "network", "restore", "resume")


def _costs(jobs: Any) -> dict[int, planner.MoveCost]:
    """What moving each job has cost so far: the mean of its last receipts."""
    receipts = Move.objects.filter(
        job__in=jobs.values("id"), remedy=RemedyChoice.TRANSPARENT, called_off=""
    ).exclude(resumed_at=None)
    phases: dict[int, list[dict[str, float]]] = defaultdict(list)
    for job, of_one in receipts.order_by("job_id", "-began_at").values_list("job_id", "phases"):
        if len(phases[job]) < 5:
            phases[job].append(of_one)
    return {job: _mean_cost(seen) for job, seen in phases.items()}


def _mean_cost(receipts: list[dict[str, float]]) -> planner.MoveCost:
    def mean(names: Iterable[str]) -> float:
        return sum(sum(of_one.get(n, 0.0) for n in names) for of_one in receipts) / len(receipts)

    return planner.MoveCost(
        checkpoint_s=mean(LEAVING),
        transfer_s=mean(("fetch",)),
        restore_s=mean(RETURNING),
        samples=len(receipts),
    )


def _matrices() -> dict[int, dict[str, Matrix]]:
    """By job that runs and kind of device, the newest that was measured of its recipe."""
    rows = Job.objects.filter(state=JobState.RUNNING).exclude(recipe="")
    profiles = Profile.objects.filter(error="", recipe__in=rows.values("recipe"))
    by_recipe: dict[str, dict[str, Matrix]] = defaultdict(dict)
    for profile in profiles.order_by("at", "id"):
        if (matrix := matrix_of(profile)) is not None:
            by_recipe[profile.recipe][profile.device_kind] = matrix
    if not by_recipe:
        return {}
    known = rows.filter(recipe__in=list(by_recipe)).values_list("id", "recipe")
    return {job: by_recipe[recipe] for job, recipe in known}


def _promises(now: datetime) -> dict[int, tuple[float, float]]:
    """Device-seconds delivered and entitled to each live job within the promise's window."""
    rows = (
        Promise.objects.filter(hour__gte=now - PROMISE_WINDOW)
        .exclude(job__state__in=ENDED_STATES)
        .values_list("job_id")
        .annotate(delivered=Sum("delivered"), entitled=Sum("entitled"))
    )
    return {job: (delivered, entitled) for job, delivered, entitled in rows}


def _moved_at(now: datetime) -> list[float]:
    """Moments of the last hour's background moves: those nobody asked for and nobody gained by."""
    rows = Move.objects.filter(
        began_at__gte=now - timedelta(hours=1), reason__in=("defragmented", "gap")
    )
    return [moment.timestamp() for moment in rows.values_list("began_at", flat=True)]
