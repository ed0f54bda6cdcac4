"""Consistent cuts through all replicas of a job."""

from __future__ import annotations

from django.db import models

from portal.choices import CheckpointState


class Checkpoint(models.Model):
    """One cut. It counts only once it is committed, when every replica's image is stored."""

    job = models.ForeignKey("portal.Job", on_delete=models.CASCADE, related_name="checkpoints")
    number = models.PositiveIntegerField()
    """Counts the checkpoints of its job from 1."""
    state = models.CharField(
        max_length=10, choices=CheckpointState, default=CheckpointState.UNDER_WAY
    )
    periodic = models.BooleanField(default=False)
    began_at = models.DateTimeField()
    frozen_at = models.FloatField(default=0.0)
    """Wall clock (seconds since 1970) at which the first replica stood still."""
    committed_at = models.DateTimeField(null=True, blank=True)
    worked_s = models.FloatField(default=0.0)
    """Seconds of work it holds."""
    bytes_raw = models.BigIntegerField(default=0)
    bytes_new = models.BigIntegerField(default=0)
    bytes_stored = models.BigIntegerField(default=0)
    phases = models.JSONField(default=dict)
    """Seconds a phase, of the slowest replica."""
    error = models.TextField(blank=True, default="")
    """Why it was discarded."""
    collected = models.BooleanField(default=False)
    """Its images have been given up; they can't be restored any more."""

    class Meta:
        ordering = ["job_id", "number"]
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="one_cut_a_number")]
        indexes = [
            models.Index(
                fields=["job"],
                name="cuts_to_go_on_from",
                condition=models.Q(state=CheckpointState.COMMITTED, collected=False),
            )
        ]

    def __str__(self) -> str:
        return f"checkpoint {self.number} of job {self.job_id} ({self.state})"


class CheckpointImage(models.Model):
    """One replica's image: a manifest in the chunk store."""

    checkpoint = models.ForeignKey(Checkpoint, on_delete=models.CASCADE, related_name="images")
    rank = models.PositiveIntegerField()
    manifest = models.CharField(max_length=120)
    output_at = models.BigIntegerField(default=0)
    """Bytes of output written when it was taken."""

    class Meta:
        ordering = ["checkpoint_id", "rank"]
        constraints = [
            models.UniqueConstraint(fields=["checkpoint", "rank"], name="one_image_a_rank")
        ]

    def __str__(self) -> str:
        return f"rank {self.rank} of checkpoint {self.checkpoint_id}"
