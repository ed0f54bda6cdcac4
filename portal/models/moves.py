"""Receipts: what each interruption of a job was for, and what it cost."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.choices import MoveKind, Remedy


class Move(models.Model):
    """One interruption, from leaving the devices to computing again."""

    job = models.ForeignKey("portal.Job", on_delete=models.CASCADE, related_name="receipts")
    kind = models.CharField(max_length=8, choices=MoveKind)
    remedy = models.CharField(max_length=12, choices=Remedy, default=Remedy.TRANSPARENT)
    reason = models.CharField(max_length=60, blank=True, default="")
    sentence = models.TextField(blank=True, default="")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    beneficiary = models.ForeignKey(
        "portal.Job", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    from_nodes = models.JSONField(default=list)
    to_nodes = models.JSONField(default=list)
    from_devices = models.PositiveIntegerField(default=0)
    to_devices = models.PositiveIntegerField(default=0)
    began_at = models.DateTimeField()
    stopped_at = models.FloatField(null=True, blank=True)
    """Wall clock (seconds since 1970) at which it ceased to compute."""
    left_at = models.DateTimeField(null=True, blank=True)
    resumed_at = models.FloatField(null=True, blank=True)
    """Wall clock at which it computed again."""
    phases = models.JSONField(default=dict)
    bytes_raw = models.BigIntegerField(default=0)
    bytes_new = models.BigIntegerField(default=0)
    bytes_stored = models.BigIntegerField(default=0)
    lost_s = models.FloatField(default=0.0)
    """Seconds of work that had to be done again."""
    called_off = models.TextField(blank=True, default="")
    """Why it did not happen and the job ran on; empty when it did."""

    class Meta:
        ordering = ["-began_at", "-id"]
        indexes = [
            models.Index(fields=["job", "-began_at"]),
            models.Index(fields=["-began_at"]),
        ]

    def __str__(self) -> str:
        return f"job {self.job_id} {self.kind}"

    @property
    def downtime_s(self) -> float | None:
        """Seconds in which no step was computed; None while it lasts or when called off."""
        if self.stopped_at is None or self.resumed_at is None:
            return None
        return max(0.0, self.resumed_at - self.stopped_at)
