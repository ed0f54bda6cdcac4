"""What jobs made of their devices over time."""

from __future__ import annotations

from django.db import models


class JobUse(models.Model):
    """A job's use at one moment: sums over its replicas, as their nodes told it."""

    job = models.ForeignKey("portal.Job", on_delete=models.CASCADE, related_name="use")
    at = models.DateTimeField()
    devices = models.PositiveIntegerField(default=0)
    """Those that were heard of."""
    utilisation = models.FloatField(default=0.0)
    """Mean over these devices, 0 to 1."""
    device_memory = models.BigIntegerField(default=0)
    cpus = models.FloatField(default=0.0)
    """CPU-seconds a second."""
    memory = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["job", "at"]
        constraints = [models.UniqueConstraint(fields=["job", "at"], name="one_use_a_moment")]
        indexes = [models.Index(fields=["at"])]

    def __str__(self) -> str:
        return f"job {self.job_id} at {self.at:%F %T}: {self.utilisation:.0%}"
