"""What is old is dropped, and nothing that a living job or a page still needs."""

from __future__ import annotations

from datetime import timedelta

from portal.models import Decision, Job, Promise
from scheduler.live.housekeeping import forget
from tests.live.puppets import Town


def test_the_ledger_is_kept_for_400_days_and_as_long_as_its_job_lives(town: Town) -> None:
    ended, lives = town.submit(), town.submit()
    Job.objects.filter(pk=ended.pk).update(state="succeeded", ended_at=town.now)
    hour = town.now.replace(minute=0, second=0, microsecond=0)
    for job in (ended, lives):
        for days in (1, 399, 401):
            Promise.objects.create(
                job=job, hour=hour - timedelta(days=days), tenant=job.tenant, tier=job.tier,
                delivered=1.0, entitled=2.0,
            )  # fmt: skip
        for days in (29, 31):
            Decision.objects.create(job=job, at=hour - timedelta(days=days), kind="hold")

    forget(town.now)

    kept = Promise.objects.order_by("hour").values_list("job_id", "hour")
    ages = {job.pk: [(hour - at).days for id, at in kept if id == job.pk] for job in (ended, lives)}
    assert ages == {ended.pk: [399, 1], lives.pk: [401, 399, 1]}
    answers = Decision.objects.filter(kind="hold", at__lte=hour - timedelta(days=1))
    assert answers.filter(job=ended).count() == 1
    assert answers.filter(job=lives).count() == 2
