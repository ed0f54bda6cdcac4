"""Views of the list of jobs that people keep."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SavedView(models.Model):
    """A named choice of filters; whoever has its address sees the same, of what they may see."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views"
    )
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=600)
    """The query string of the list's address."""

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="one_view_a_name")]

    def __str__(self) -> str:
        return self.name
