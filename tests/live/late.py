"""Commits in another order than the writes: only on a database where several write at once."""

from __future__ import annotations

from django.db import connections

from portal.models import Job
from scheduler.live.observing import Watch
from tests.live.puppets import Town
from tests.live.test_watching import agree


def test_a_late_commit_is_not_missed(town: Town) -> None:
    """A transaction that wrote first and commits last."""
    first, second = town.submit(), town.submit()
    watch = Watch()
    late = connections.create_connection("default")
    try:
        late.set_autocommit(False)
        with late.cursor() as cursor:
            cursor.execute("UPDATE portal_job SET moves = 41 WHERE id = %s", [first.pk])
        Job.objects.filter(pk=second.pk).update(moves=42)
        assert sorted(job.moves for job in agree(town, watch).jobs) == [0, 42]
        Job.objects.filter(pk=second.pk).update(moves=43)
        assert sorted(job.moves for job in agree(town, watch).jobs) == [0, 43]
        late.commit()
    finally:
        late.close()
    assert sorted(job.moves for job in agree(town, watch).jobs) == [41, 43]
