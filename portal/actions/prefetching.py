"""Images brought ahead to where a job goes next, while it runs on where it is.

A move begins when the nodes of the promised placement have fetched the job's newest checkpoint, or
after a bounded patience: what is left for the time that the job stands still is what has changed
since. All of it is hints: without them everything is as correct, and slower.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import F, Q

from agents.protocol import Prefetch, State, Want
from portal.actions.accounting import standing
from portal.actions.checkpoints import newest_checkpoint
from portal.choices import CheckpointState, PlacementState
from portal.events import renew
from portal.models import Checkpoint, CheckpointImage, Job, PlacedReplica, Placement
from portal.telemetry import latest

PATIENCE = timedelta(seconds=20)
"""How long nodes may fetch ahead, and then some by size."""
BYTES_A_SECOND = 50e6
"""Raw bytes for which a second is added."""
LONGEST = timedelta(minutes=10)
LARGE = 200 << 20
"""Bytes of memory from which a replica is worth a checkpoint of its own before its first move."""


def worthwhile(job_id: int) -> bool:
    """Whether a job should run on while its image goes ahead of it: it has one, or is large.

    Asks the broker: not within a transaction.
    """
    committed = Checkpoint.objects.filter(
        job=job_id, state=CheckpointState.COMMITTED, collected=False
    )
    if committed.exists():
        return True
    seats = PlacedReplica.objects.filter(
        placement__job=job_id, placement__state=PlacementState.ACTIVE
    ).values_list("node__name", "rank")
    told = latest({node for node, _ in seats})
    uses = [told.get(node, {}).get("replicas", {}).get(f"{job_id}/{rank}") for node, rank in seats]
    return any(use and use["memory"] >= LARGE for use in uses)


def hints(seats: Collection[PlacedReplica]) -> dict[int, list[Prefetch]]:
    """By node, images of the newest checkpoints of the jobs that are to come to these seats.

    Of those that are being stored to come here, also what is stored already.
    """
    if not seats:
        return {}
    rows = Checkpoint.objects.filter(
        job__in={seat.placement.job_id for seat in seats},
        state=CheckpointState.COMMITTED,
        collected=False,
    )
    newest = dict(rows.order_by("number").values_list("job_id", "id"))
    images = CheckpointImage.objects.filter(checkpoint__in=newest.values()).order_by()
    manifests = {
        (checkpoint, rank): manifest
        for checkpoint, rank, manifest in images.values_list("checkpoint_id", "rank", "manifest")
    }
    found = defaultdict[int, list[Prefetch]](list)
    stored = _stored({seat.placement.job_id for seat in seats})
    for seat in seats:
        job = seat.placement.job_id
        if manifest := manifests.get((newest.get(job, 0), seat.rank)):
            found[seat.node_id].append(Prefetch(job=job, rank=seat.rank, manifest=manifest))
        if manifest := stored.get((job, seat.rank)):
            hint = Prefetch(job=job, rank=seat.rank, manifest=manifest, final=True)
            found[seat.node_id].append(hint)
    return found


def _stored(jobs: Collection[int]) -> dict[tuple[int, int], str]:
    """By job and rank, the images of a cut that is not committed yet."""
    leaving = PlacedReplica.objects.filter(
        placement__job__in=jobs,
        placement__state=PlacementState.ACTIVE,
        placement__want=Want.STORED,
        placement__storing__periodic=False,
        state=State.STORED,
        checkpoint=F("placement__storing__number"),
    ).exclude(manifest="")
    return {
        (job, rank): manifest
        for job, rank, manifest in leaving.order_by().values_list(
            "placement__job_id", "rank", "manifest"
        )
    }


def tell_stored(job: Job, ranks: Collection[int]) -> None:
    """Replicas were stored: where they go, they may be fetched before all of the cut is."""
    for held in standing(job):
        if held.state == PlacementState.HELD:
            renew(seat.node_id for seat in held.replicas.all() if seat.rank in ranks)


def note_fetched(node_id: int, manifests: Collection[str]) -> set[int]:
    """Write down which promised seats have their image; answer the jobs that this tells of."""
    seats = PlacedReplica.objects.filter(
        ~Q(fetched__in=manifests), node_id=node_id, placement__state=PlacementState.HELD
    ).values_list("id", "rank", "placement__job_id")
    touched: set[int] = set()
    for id, rank, job in seats:
        image = CheckpointImage.objects.filter(
            checkpoint__job=job, rank=rank, manifest__in=manifests
        ).first()
        if image is not None:
            PlacedReplica.objects.filter(pk=id).update(fetched=image.manifest)
            touched.add(job)
    return touched


def is_ready(job: Job, held: Placement, since: datetime, now: datetime) -> bool:
    """Whether nothing is gained by letting the job run on: all is fetched, or it takes too long."""
    checkpoint = newest_checkpoint(job)
    if checkpoint is None:
        return True
    patience = PATIENCE + timedelta(seconds=checkpoint.bytes_raw / BYTES_A_SECOND)
    if now - since > min(patience, LONGEST):
        return True
    images = dict(checkpoint.images.values_list("rank", "manifest"))
    return all(seat.fetched == images.get(seat.rank) for seat in held.replicas.all())
