"""Images brought ahead to where a job goes next, while it runs on where it is.

A move begins when the nodes of the promised placement have fetched the job's newest checkpoint, or
after a bounded patience: what is left for the time that the job stands still is what has changed
since. All of it is hints: without them everything is as correct, and slower.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import F, OuterRef, Q, Subquery

from agents.protocol import Prefetch, State, Want
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


def hints(node_id: int) -> list[Prefetch]:
    """Images of the newest checkpoints of the jobs that are to come to a node.

    Of those that are being stored to come here, also what is stored already.
    """
    newest = Checkpoint.objects.filter(
        job=OuterRef("placement__job"), state=CheckpointState.COMMITTED, collected=False
    ).order_by("-number")
    seats = PlacedReplica.objects.filter(
        node_id=node_id, placement__state=PlacementState.HELD
    ).annotate(newest=Subquery(newest.values("id")[:1]))
    wanted = {
        (seat.newest, seat.rank, seat.placement.job_id)
        for seat in seats.select_related("placement")
    }
    if not wanted:
        return []
    images = CheckpointImage.objects.filter(checkpoint__in={id for id, *_ in wanted if id})
    known = [
        Prefetch(job=image.checkpoint.job_id, rank=image.rank, manifest=image.manifest)
        for image in images.select_related("checkpoint").order_by("checkpoint", "rank")
        if (image.checkpoint_id, image.rank, image.checkpoint.job_id) in wanted
    ]
    return known + _stored({(job, rank) for _, rank, job in wanted})


def _stored(coming: Collection[tuple[int, int]]) -> list[Prefetch]:
    """Images of these replicas, by job and rank, of a cut that is not committed yet."""
    leaving = PlacedReplica.objects.filter(
        placement__job__in={job for job, _ in coming},
        placement__state=PlacementState.ACTIVE,
        placement__want=Want.STORED,
        placement__storing__periodic=False,
        state=State.STORED,
        checkpoint=F("placement__storing__number"),
    ).exclude(manifest="")
    return [
        Prefetch(job=job, rank=rank, manifest=manifest, final=True)
        for job, rank, manifest in leaving.order_by("placement", "rank").values_list(
            "placement__job_id", "rank", "manifest"
        )
        if (job, rank) in coming
    ]


def tell_stored(job: Job, ranks: Collection[int]) -> None:
    """Replicas were stored: where they go, they may be fetched before all of the cut is."""
    seats = PlacedReplica.objects.filter(
        placement__job=job, placement__state=PlacementState.HELD, rank__in=ranks
    )
    renew(seats.values_list("node_id", flat=True))


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
