"""What the planner allots, onto the rows of running replicas; their agents are told at once."""

from __future__ import annotations

from django.db import transaction

from portal.actions.placing import nodes_in
from portal.choices import PlacementState
from portal.events import renew
from portal.models import PlacedReplica
from scheduler import planner
from scheduler.live.naming import job_id, job_row


def allot_cpus(snapshot: planner.Snapshot, policy: planner.Policy) -> int:
    """Give every running replica its CPUs; answer how many have others than before."""
    allotted = planner.allot(snapshot, policy)
    seats = PlacedReplica.objects.filter(placement__state=PlacementState.ACTIVE)
    if allotted:
        rows = seats.select_related("placement")
        known = {job_row(job) for job in allotted}
        changed = [
            seat
            for seat in rows.iterator()
            if seat.placement.job_id in known or seat.cpus
            if _give(seat, allotted.get(job_id(seat.placement.job_id), {}))
        ]
    else:
        changed = list(seats.filter(cpus__gt=0).select_related("placement"))
        for seat in changed:
            seat.cpus = 0.0
    if changed:
        with transaction.atomic():
            PlacedReplica.objects.bulk_update(changed, ["cpus"], batch_size=500)
            renew(nodes_in(changed))
    return len(changed)


def _give(seat: PlacedReplica, by_rank: dict[int, float]) -> bool:
    cpus = by_rank.get(seat.rank, 0.0)
    if seat.cpus == cpus:
        return False
    seat.cpus = cpus
    return True
