"""Rows in the planner's words: tenants, tiers and jobs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

from portal.actions.accounting import decayed
from portal.actions.receipts import learned_cost
from portal.choices import JobState, PlacementState
from portal.models import Tenant, Tier
from scheduler import planner
from scheduler.live import reading
from scheduler.live.naming import job_id
from scheduler.planner.sensitivity import Matrix

REMEDIES = {remedy.value: remedy for remedy in planner.Remedy}


def tier_of(row: Tier) -> planner.Tier:
    return planner.Tier(
        id=planner.TierId(row.slug),
        rank=row.rank,
        promise=row.promise,
        preemptible=row.preemptible,
    )


def tenants_of(
    rows: Collection[Tenant], now: datetime, kinds: Collection[str]
) -> Iterable[planner.Tenant]:
    slugs = {row.id: planner.TenantId(row.slug) for row in rows}
    for row in rows:
        yield planner.Tenant(
            id=slugs[row.id],
            parent=slugs[row.parent_id] if row.parent_id else None,
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


def _phase(row: reading.JobRow, stays: list[reading.Stay], now: float) -> planner.Phase:
    if row.state == JobState.WAITING and not any(stay.holding for stay in stays):
        return planner.Phase.WAITING
    undisturbed = (
        row.state == JobState.RUNNING
        and len(stays) == 1
        and stays[0].undisturbed
        and not row.pause_asked
        and not (row.untouchable_until and row.untouchable_until > now)
    )
    return planner.Phase.RUNNING if undisturbed else planner.Phase.MOVING


def job_of(
    row: reading.JobRow,
    stays: list[reading.Stay],
    now: float,
    receipts: list[dict[str, float]],
    image: int | None,
    beyond: tuple[float, float],
    avoided: frozenset[planner.NodeId],
    gains: Mapping[str, Matrix],
    kind: Callable[[planner.Seat], str],
    tenant: planner.TenantId,
    tier: planner.TierId,
    partition: str,
) -> planner.Job:
    remedy, phase = REMEDIES[row.remedy], _phase(row, stays, now)
    seats = _seats([stay for stay in stays if stay.holding])
    measured = gains and phase is planner.Phase.RUNNING and seats
    return planner.Job(
        id=job_id(row.id),
        tenant=tenant,
        tier=tier,
        phase=phase,
        submitted_at=row.submitted_at,
        replicas=row.replicas,
        gpus_per_replica=row.gpus_per_replica,
        fewest_devices=row.fewest_devices,
        device_kind=row.device_kind,
        device_memory=row.device_memory,
        cpus_per_replica=row.cpus_per_replica,
        memory_per_replica=row.memory_per_replica,
        partition=partition,
        remedy=remedy,
        seats=seats,
        kept_on=_seats([stay for stay in stays if stay.state == PlacementState.PARKED]),
        wanted_nodes=reading.node_names(row.wanted_nodes),
        avoid_nodes=avoided,
        move_asked=bool(row.move_asked),
        asked_devices=row.asked_devices,
        has_image=image is not None,
        waiting_since=row.waiting_since or row.submitted_at,
        started_at=row.running_since,
        last_moved_at=row.last_moved_at,
        moves=row.moves,
        expected_s=row.expected_s,
        worked_s=row.worked_s,
        at_stake_s=row.worked_s if remedy is planner.Remedy.REQUEUE else 0.0,
        measured_at=row.accounted_at or row.submitted_at,
        delivered=row.delivered - beyond[0],
        entitled=row.entitled - beyond[1],
        cost=learned_cost(receipts),
        bytes=image or 0,
        matrix=gains.get(kind(seats[0])) if measured else None,
    )


def _seats(stays: list[reading.Stay]) -> tuple[planner.Seat, ...]:
    found = [stay.seats for stay in stays]
    return found[0] if len(found) == 1 else tuple([seat for seats in found for seat in seats])
