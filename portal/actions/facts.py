"""Facts from agents: written to the rows, and what follows from them settled."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from agents.protocol import Facts, ReplicaFact
from portal.actions.settling import settle
from portal.choices import PlacementState
from portal.models import PlacedReplica

FIELDS = (
    "state", "exit_code", "error", "detail", "checkpoint", "manifest", "outputs", "phases",
    "bytes_raw", "bytes_new", "bytes_stored", "started_at", "stopped_at",
)  # fmt: skip


def accept_facts(node_id: int, facts: Facts) -> None:
    """Take what an agent reports of its node. A fact with an old epoch changes nothing.

    A replica that the agent has not heard of yet says nothing about it; only a report tells.
    """
    reported = {(fact.job, fact.rank, fact.epoch): fact for fact in facts.replicas}
    touched: set[int] = set()
    with transaction.atomic():
        seats = PlacedReplica.objects.filter(
            node_id=node_id,
            placement__state__in=(PlacementState.ACTIVE, PlacementState.PARKED),
        ).select_related("placement")
        for seat in seats:
            fact = reported.get((seat.placement.job_id, seat.rank, seat.placement.epoch))
            if fact is not None and (changes := _changes(seat, fact)):
                PlacedReplica.objects.filter(pk=seat.pk).update(**changes)
                touched.add(seat.placement.job_id)
    for job in sorted(touched):
        settle(job)


def _changes(seat: PlacedReplica, fact: ReplicaFact) -> dict[str, Any]:
    changes = {}
    for name in FIELDS:
        value = getattr(fact, name)
        value = value.value if name == "state" else value
        if value != getattr(seat, name):
            changes[name] = value
    return changes
