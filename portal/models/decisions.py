"""What the planner answered for each job; a row only when the answer changes."""

from __future__ import annotations

from django.db import models


class Decision(models.Model):
    """One answer with its named reason."""

    job = models.ForeignKey("portal.Job", on_delete=models.CASCADE, related_name="decisions")
    at = models.DateTimeField()
    kind = models.CharField(max_length=10)
    """``place``, ``preempt``, ``migrate``, ``resize`` or ``hold``."""
    reason = models.CharField(max_length=60)
    numbers = models.JSONField(default=dict)
    sentence = models.TextField(default="")

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["job", "-at"])]

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.kind} ({self.reason})"
