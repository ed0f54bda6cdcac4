"""What the planner allots, onto the rows of running replicas; their agents are told at once."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from portal.actions.placing import nodes_in
from portal.choices import PlacementState
from portal.events import renew
from portal.models import PlacedReplica
from scheduler import planner
from scheduler.live.naming import job_id

NONE: Mapping[int, float] = {}


def allot_cpus(snapshot: planner.Snapshot, policy: planner.Policy) -> int:
    """Give every running replica its CPUs; answer how many have others than before."""
    allotted = planner.allot(snapshot, policy)
    seats = PlacedReplica.objects.filter(placement__state=PlacementState.ACTIVE)
    if allotted:
        # Of thousands most have theirs already: they are not made instances of.
        rows = seats.order_by("id").values_list("id", "placement__job_id", "rank", "cpus")
        given = {
            id: cpus
            for id, job, rank, had in rows.iterator()
            if (cpus := allotted.get(job_id(job), NONE).get(rank, 0.0)) != had
        }
        changed = list(seats.select_related("placement").in_bulk(given).values())
        for seat in changed:
            seat.cpus = given[seat.id]
    else:
        changed = list(seats.filter(cpus__gt=0).select_related("placement"))
        for seat in changed:
            seat.cpus = 0.0
    if changed:
        with transaction.atomic():
            PlacedReplica.objects.bulk_update(changed, ["cpus"], batch_size=500)
            renew(nodes_in(changed))
    return len(changed)
