"""Who changed what: the trail of every act of an admin or manager."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    """One change, with the values before and after it."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    act = models.CharField(max_length=60)
    subject = models.CharField(max_length=120)
    """What was changed, e.g. ``tenant vision``."""
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.act} {self.subject}"
