"""What time itself changes."""

from __future__ import annotations

from typing import Any

import pytest

from portal.models import Job, Promise
from scheduler.live import reconciling
from scheduler.live.reconciling import keep_books, take_due_checkpoints
from tests.live.puppets import Town


def test_the_books_of_those_longest_ago_are_kept_first(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "BOOKS_A_TURN", 2)
    town.node("n1", 2)
    jobs = [town.submit() for _ in range(3)]
    town.rest()
    town.pass_time(60)
    first = town.now
    keep_books(first)
    booked = set(Job.objects.filter(accounted_at=first).values_list("pk", flat=True))
    assert len(booked) == 2
    keep_books(town.now)
    for job in jobs:
        job.refresh_from_db()
        assert job.accounted_at is not None and job.accounted_at >= first
        assert job.entitled >= 60.0
        entries = Promise.objects.filter(job=job)
        assert sum(entry.entitled for entry in entries) == pytest.approx(job.entitled)


@pytest.mark.parametrize(
    ("of_job", "of_tier", "due"),
    [(30, None, True), (None, 30, True), (0, 30, False), (None, None, False), (900, 30, False)],
)
def test_a_checkpoint_is_due_as_the_job_says_or_else_its_tier(
    town: Town, of_job: Any, of_tier: Any, due: bool
) -> None:
    town.node("n1", 1)
    job = town.submit()
    town.rest()
    job.tier.checkpoint_every_s = of_tier
    job.tier.save()
    Job.objects.filter(pk=job.pk).update(checkpoint_every_s=of_job)
    assert take_due_checkpoints(town.now) == []
    town.pass_time(60)
    assert take_due_checkpoints(town.now) == [job.pk] * due
    assert take_due_checkpoints(town.now) == [], "the attempt counts"
