"""Questions about jobs that are asked in more than one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from portal.choices import ENDED_STATES, JobState

if TYPE_CHECKING:
    from portal.models import Job, User  # noqa: F401 - Job is named in a string below


class JobQuerySet(models.QuerySet["Job", "Job"]):
    """Jobs, by who may see them and where they stand."""

    def visible_to(self, user: User | Any) -> JobQuerySet:
        """The jobs of the tenants that a user belongs to; an admin sees all, a stranger none."""
        if not user.is_authenticated:
            return self.none()
        if user.is_admin:
            return self
        return self.filter(tenant__memberships__user=user)

    def live(self) -> JobQuerySet:
        return self.exclude(state__in=ENDED_STATES)

    def waiting(self) -> JobQuerySet:
        return self.filter(state=JobState.WAITING)
