"""One writer a job at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from portal.models import Job


@contextmanager
def locked_job(id: int) -> Iterator[Job]:
    """Open a transaction and hold the job's row until it ends. SQLite locks the whole database."""
    with transaction.atomic():
        jobs = Job.objects.select_for_update(of=("self",))
        yield jobs.select_related("tenant", "tier", "owner").get(pk=id)
