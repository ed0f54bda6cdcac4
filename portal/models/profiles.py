"""What jobs gain from CPUs, as agents measured it on running replicas."""

from __future__ import annotations

from django.db import models


class Profile(models.Model):
    """One measurement of one job; it holds for every job of the same recipe on such devices."""

    job = models.ForeignKey("portal.Job", on_delete=models.CASCADE, related_name="profiles")
    number = models.PositiveIntegerField()
    recipe = models.CharField(max_length=64, db_index=True)
    node = models.CharField(max_length=63)
    device_kind = models.CharField(max_length=60)
    at = models.DateTimeField()
    seconds = models.FloatField(default=0.0)
    """How long the measuring took."""
    source = models.CharField(max_length=10, blank=True, default="")
    """``device`` (busy time of its GPUs) or ``cpu`` (CPU time)."""
    devices = models.PositiveIntegerField(default=1)
    """Devices that the measured replica held."""
    share = models.FloatField(default=0.0)
    """CPUs that belonged to those devices: where its pace is 1."""
    points = models.JSONField(default=list)
    """[CPUs of the replica, pace, CPUs used, part of the periods held back], rising."""
    working = models.BigIntegerField(default=0)
    """Bytes that it held besides cached files."""
    cached = models.BigIntegerField(default=0)
    read = models.FloatField(default=0.0)
    """Bytes a second that it read, cached or not; 0: not known."""
    storage = models.FloatField(default=0.0)
    """Bytes a second that the node's storage was taken to deliver."""
    error = models.CharField(max_length=300, blank=True, default="")
    """Why nothing could be measured; empty when there are points."""

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="one_profile_a_number")
        ]

    def __str__(self) -> str:
        return f"profile {self.number} of job {self.job_id}"
