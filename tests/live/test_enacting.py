"""Decisions that have gone stale between observing and enacting change nothing."""

from __future__ import annotations

from portal.actions.steering import cancel_job
from portal.models import Decision, Placement
from scheduler.live.enacting import enact
from scheduler.planner import (
    DeviceId,
    Hold,
    JobId,
    Migrate,
    NodeId,
    Place,
    Preempt,
    Reason,
    Remedy,
    Seat,
    Why,
)
from tests.live.puppets import Town

WHY = Why(reason=Reason.FITS)


def seat(node: str, device: str) -> Seat:
    return Seat(rank=0, node=NodeId(node), devices=(DeviceId(f"{node}/{device}"),))


def test_a_cancelled_job_is_neither_placed_nor_held(town: Town) -> None:
    town.node("n1", 1)
    job = town.submit()
    cancel_job(town.user, job)
    id = JobId(str(job.id))
    enact((Place(job=id, seats=(seat("n1", "d0"),), why=WHY), Hold(job=id, why=WHY)), town.now)
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert not Placement.objects.exists()
    assert job.sentence == ""


def test_a_job_is_placed_once(town: Town) -> None:
    town.node("n1", 2)
    job = town.submit()
    for device in ("d0", "d1"):
        place = Place(job=JobId(str(job.id)), seats=(seat("n1", device),), why=WHY)
        enact((place,), town.now)
    assert Placement.objects.count() == 1


def test_who_no_longer_runs_is_not_pushed_off_and_the_promise_is_dropped(town: Town) -> None:
    town.node("n1", 1)
    victim, gainer = town.submit(), town.submit("premium")
    town.rest()
    victim.refresh_from_db()
    runs, waits = (victim, gainer) if victim.state == "running" else (gainer, victim)
    runs.refresh_from_db()
    type(runs).objects.filter(pk=runs.pk).update(state="starting")
    enact(
        (
            Preempt(job=JobId(str(runs.id)), remedy=Remedy.TRANSPARENT, why=WHY),
            Place(job=JobId(str(waits.id)), seats=(seat("n1", "d0"),), why=WHY),
        ),
        town.now,
    )
    assert not Placement.objects.filter(state="held").exists() or town.where(runs) == ["n1"]
    type(runs).objects.filter(pk=runs.pk).update(state="running")
    town.rest()
    assert not Placement.objects.filter(state="held").exists()


def test_a_migration_of_a_job_that_was_cancelled_is_dropped(town: Town) -> None:
    town.node("n1", 1)
    town.node("n2", 1)
    job = town.submit()
    town.rest()
    cancel_job(town.user, job)
    enact((Migrate(job=JobId(str(job.id)), seats=(seat("n2", "d0"),), why=WHY),), town.now)
    assert not Placement.objects.filter(state="held").exists()


def test_the_reason_is_kept_once_and_its_sentence_follows_the_numbers(town: Town) -> None:
    town.node("n1", 1)
    town.submit(), town.submit()
    town.rest()
    waiting = town.submit()
    for _ in range(3):
        town.cycle()
    waiting.refresh_from_db()
    assert waiting.sentence
    assert Decision.objects.filter(job=waiting, kind="hold").count() == 1
