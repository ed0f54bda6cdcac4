"""Checkpoints of a job: begun, committed once every replica's image is stored, or discarded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Max

from portal.actions.accounting import standing
from portal.actions.output import output_size
from portal.actions.receipts import slowest
from portal.choices import CheckpointState, PlacementState
from portal.events import CheckpointEvent, publish_on_commit, renew
from portal.models import Checkpoint, CheckpointImage, Job, PlacedReplica, Placement

KEPT = 2
"""Committed checkpoints kept of a live job: the newest, and one in case it proves damaged."""


def begin_checkpoint(
    job: Job, placement: Placement, now: datetime, *, periodic: bool
) -> Checkpoint:
    """Number a new cut of this placement."""
    last = job.checkpoints.aggregate(last=Max("number"))["last"] or 0
    checkpoint = Checkpoint.objects.create(
        job=job, number=last + 1, periodic=periodic, began_at=now, worked_s=job.worked_s
    )
    placement.storing = checkpoint
    return checkpoint


def commit_checkpoint(job: Job, placement: Placement, now: datetime) -> Checkpoint:
    """Every replica is stored: from now on the job can go back to this cut."""
    checkpoint = placement.storing
    assert checkpoint is not None
    replicas = list(placement.replicas.all())
    CheckpointImage.objects.bulk_create(
        CheckpointImage(
            checkpoint=checkpoint,
            rank=replica.rank,
            manifest=replica.manifest,
            output_at=output_size(job.id, replica.rank),
        )
        for replica in replicas
    )
    checkpoint.state = CheckpointState.COMMITTED
    checkpoint.committed_at = now
    checkpoint.frozen_at = min((r.stopped_at for r in replicas if r.stopped_at), default=0.0)
    checkpoint.bytes_raw = sum(replica.bytes_raw for replica in replicas)
    checkpoint.bytes_new = sum(replica.bytes_new for replica in replicas)
    checkpoint.bytes_stored = sum(replica.bytes_stored for replica in replicas)
    checkpoint.phases = slowest(replica.phases for replica in replicas)
    checkpoint.save()
    placement.storing = None
    retain(job)
    # Where the job goes next, this cut is fetched ahead.
    for held in standing(job):
        if held.state == PlacementState.HELD:
            renew(replica.node_id for replica in held.replicas.all())
    publish_on_commit(CheckpointEvent(kind="checkpoint", job=job.id), f"job.{job.id}")
    return checkpoint


def discard_checkpoint(placement: Placement, why: str) -> None:
    """Give up the cut that is under way."""
    if placement.storing_id is None:
        return
    Checkpoint.objects.filter(pk=placement.storing_id, state=CheckpointState.UNDER_WAY).update(
        state=CheckpointState.DISCARDED, error=why, collected=True
    )
    placement.storing = None


def newest_checkpoint(job: Job) -> Checkpoint | None:
    """The cut that the job would go on from."""
    return newest_checkpoints([job]).get(job.id)


def newest_checkpoints(jobs: Iterable[Job]) -> dict[int, Checkpoint]:
    """The cut that each job would go on from, by job; one that has none is left out."""
    ids = [job.id for job in jobs]
    if not ids:
        return {}
    rows = Checkpoint.objects.filter(
        job__in=ids, state=CheckpointState.COMMITTED, collected=False
    ).order_by("number")
    return {row.job_id: row for row in rows}


def fall_back(job: Job) -> float:
    """Book that the job goes back to its newest checkpoint; answer the seconds of work lost."""
    checkpoint = newest_checkpoint(job)
    kept = checkpoint.worked_s if checkpoint else 0.0
    lost = max(0.0, job.worked_s - kept)
    job.worked_s = kept
    return lost


def retain(job: Job, kept: int = KEPT) -> None:
    """Give up all but the newest committed checkpoints; housekeeping collects their chunks."""
    committed = job.checkpoints.filter(state=CheckpointState.COMMITTED, collected=False)
    numbers = list(committed.order_by("-number").values_list("number", flat=True))
    committed.filter(number__in=numbers[kept:]).update(collected=True)


def condemn(checkpoint: Checkpoint, why: str) -> None:
    """A committed cut proved damaged: never restore it again."""
    Checkpoint.objects.filter(pk=checkpoint.pk).update(
        state=CheckpointState.DISCARDED, error=why, collected=True
    )


def living_manifests() -> Iterable[str]:
    """Keys of all manifests that something still needs: images of kept cuts, outputs of jobs."""
    yield from CheckpointImage.objects.filter(
        checkpoint__state=CheckpointState.COMMITTED, checkpoint__collected=False
    ).values_list("manifest", flat=True)
    yield from PlacedReplica.objects.exclude(outputs="").values_list("outputs", flat=True)


def outputs_of(job: Job) -> list[tuple[int, str]]:
    """Rank and manifest key of each replica's last stored workspace."""
    rows = PlacedReplica.objects.filter(placement__job=job).exclude(outputs="")
    newest: dict[int, str] = {}
    for rank, key in rows.order_by("placement__epoch").values_list("rank", "outputs"):
        newest[rank] = key
    return sorted(newest.items())
