"""Facts from agents: written to the rows, and what follows from them settled."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from django.utils import timezone

from agents.protocol import Facts, Profile, ReplicaFact, State
from portal.actions.locking import glimpsed_jobs, in_bulk, whole
from portal.actions.placing import PRESENT, present_placement
from portal.actions.prefetching import note_fetched, tell_stored
from portal.actions.profiling import keep_profile
from portal.actions.settling import due, step
from portal.models import Job, PlacedReplica

FIELDS = (
    "state", "exit_code", "error", "detail", "checkpoint", "manifest", "outputs", "phases",
    "bytes_raw", "bytes_new", "bytes_stored", "started_at", "stopped_at", "profile",
)  # fmt: skip
Reported = Mapping[tuple[int, int, int], ReplicaFact]
"""Facts by job, rank and epoch."""


def accept_facts(node_id: int, facts: Facts) -> None:
    """Take what an agent reports of its node. A fact with an old epoch changes nothing.

    A replica that the agent has not heard of yet says nothing about it; only a report tells.
    """
    reported = {(fact.job, fact.rank, fact.epoch): fact for fact in facts.replicas}
    touched = _touched(node_id, reported)
    if facts.prefetched:
        touched |= note_fetched(node_id, facts.prefetched)
    in_bulk(touched, lambda ids: _accept(node_id, reported, ids))


def _touched(node_id: int, reported: Reported) -> set[int]:
    """Jobs whose replicas here are reported otherwise than they stand in the rows."""
    seats = PlacedReplica.objects.filter(
        node_id=node_id,
        placement__state__in=PRESENT,
        placement__job__in={job for job, *_ in reported},
    ).order_by()
    names = ("placement__job_id", "rank", "placement__epoch", *FIELDS)
    return {
        job
        for job, rank, epoch, *values in seats.values_list(*names)
        if (fact := reported.get((job, rank, epoch))) is not None and values != _values(fact)
    }


def _values(fact: ReplicaFact) -> list[object]:
    """As they stand in the rows: of the state its word, of a profile its number."""
    plain = (getattr(fact, name) for name in FIELDS[1:-1])
    return [fact.state.value, *plain, fact.profile.number if fact.profile else 0]


def _accept(node_id: int, reported: Reported, ids: Collection[int]) -> None:
    """Write what is reported, and have those jobs go on for which all that it takes is there."""
    now = timezone.now()
    with glimpsed_jobs(ids) as jobs:
        profiles: dict[int, list[tuple[PlacedReplica, Profile]]] = {}
        ready = []
        for job in jobs:
            placement = present_placement(job)
            if placement is None:
                continue
            seats = list(placement.replicas.all())
            profiles[job.id] = list(_write(node_id, reported, job, placement.epoch, seats))
            if profiles[job.id] or due(job, placement, seats, now):
                ready.append(job)
        for job in whole(ready):
            for seat, profile in profiles[job.id]:
                keep_profile(job, seat, profile)
            step(job, now)


def _write(
    node_id: int, reported: Reported, job: Job, epoch: int, seats: Collection[PlacedReplica]
) -> Iterator[tuple[PlacedReplica, Profile]]:
    """Write what a node reports of its seats, and answer the profiles that are new."""
    stored = set()
    for seat in seats:
        fact = reported.get((job.id, seat.rank, epoch))
        if fact is None or seat.node_id != node_id:
            continue
        changed = []
        for name, value in zip(FIELDS, _values(fact), strict=True):
            if getattr(seat, name) != value:
                setattr(seat, name, value)
                changed.append(name)
        if changed:
            seat.save(update_fields=changed)
        if "manifest" in changed and seat.state == State.STORED:
            stored.add(seat.rank)
        if "profile" in changed and fact.profile is not None:
            yield seat, fact.profile
    if stored:
        tell_stored(job, stored)
