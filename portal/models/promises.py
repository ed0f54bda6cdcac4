"""The ledger of promises, hour by hour."""

from __future__ import annotations

from django.db import models


class Promise(models.Model):
    """Device-seconds that one job was entitled to and got within one hour."""

    job = models.ForeignKey("portal.Job", on_delete=models.CASCADE, related_name="promises")
    hour = models.DateTimeField()
    tenant = models.ForeignKey("portal.Tenant", on_delete=models.CASCADE, related_name="+")
    tier = models.ForeignKey("portal.Tier", on_delete=models.CASCADE, related_name="+")
    delivered = models.FloatField(default=0.0)
    entitled = models.FloatField(default=0.0)
    promise = models.FloatField(default=0.0)
    """The fraction promised in that hour."""

    class Meta:
        ordering = ["-hour", "job_id"]
        constraints = [models.UniqueConstraint(fields=["job", "hour"], name="one_entry_an_hour")]
        indexes = [models.Index(fields=["hour"])]

    def __str__(self) -> str:
        return f"job {self.job_id} at {self.hour:%F %H}h: {self.delivered}/{self.entitled}"
