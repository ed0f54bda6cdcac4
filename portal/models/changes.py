"""The log of what changed, by which a cycle that knows the fleet reads only what is new."""

from __future__ import annotations

from django.db import models


class Change(models.Model):
    """A row that the planner looks at was written; noted by the database (`portal.changes`)."""

    subject = models.CharField(max_length=10)
    """What it was about, or ``all``, or ``floor``: see `portal.changes`."""
    key = models.BigIntegerField(default=0)
    """Id of the row."""
    stamp = models.BigIntegerField(default=0, db_index=True)
    """On PostgreSQL the transaction that wrote it; elsewhere ``id`` tells the order."""

    def __str__(self) -> str:
        return f"{self.subject} {self.key}"
