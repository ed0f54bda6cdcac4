"""A turn that takes long is held on, and nothing more is done in one that was lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from portal.models import Lease
from scheduler.live import lease, turns
from scheduler.live.lease import LASTS, TurnLostError, turn
from scheduler.planner import Snapshot
from tests.live.puppets import Town

ANOTHER = "another-machine:1"


class Clock:
    """A clock that is moved on by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(lease, "time", SimpleNamespace(monotonic=found.monotonic))
    return found


def give_to_another() -> None:
    later = timezone.now() + timedelta(minutes=1)
    Lease.objects.filter(name="cycle").update(holder=ANOTHER, until=later)


@pytest.mark.django_db
def test_a_turn_is_held_on_when_a_third_of_it_has_passed(clock: Clock) -> None:
    with turn("cycle") as mine:
        assert mine is not None
        soon = timezone.now() + timedelta(seconds=1)
        Lease.objects.filter(name="cycle").update(until=soon)
        mine.keep()
        assert Lease.objects.get(name="cycle").until == soon
        clock.now += LASTS.total_seconds() / 2
        mine.keep()
        until = Lease.objects.get(name="cycle").until
        assert until is not None
        assert until > soon + LASTS / 2


@pytest.mark.django_db
def test_a_turn_that_went_to_another_is_not_held_on(clock: Clock) -> None:
    with turn("cycle") as mine:
        assert mine is not None
        give_to_another()
        clock.now += LASTS.total_seconds() / 2
        with pytest.raises(TurnLostError, match="cycle"):
            mine.keep()
    row = Lease.objects.get(name="cycle")
    assert row.holder == ANOTHER
    assert row.until is not None


def test_nothing_more_is_done_in_a_turn_that_was_lost(
    town: Town, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    town.node("n1", 2)
    job = town.submit()
    look = turns.WATCH.observe

    def slow(now: datetime) -> Snapshot:
        give_to_another()
        clock.now += LASTS.total_seconds() / 2
        return look(now)

    monkeypatch.setattr(turns.WATCH, "observe", slow)
    turns.take_turn(reconciling=False)
    job.refresh_from_db()
    assert job.state == "waiting"
    assert "planned anew" in caplog.text
    monkeypatch.setattr(turns.WATCH, "observe", look)
    Lease.objects.filter(name="cycle").update(until=None)
    turns.take_turn(reconciling=False)
    job.refresh_from_db()
    assert job.state == "starting"
