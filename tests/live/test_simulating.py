"""What if, from a row to its results: the fleet's own days or a file, as it is and changed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone

from portal.actions import simulations as actions
from portal.actions.simulations import Question, ask_simulation, cancel_simulation, give_up_silent
from portal.models import Job, Simulation, User
from portal.refusals import Refused
from scheduler.live import simulating
from scheduler.live.simulating import history, run_next
from tests.live.puppets import Town

OWN = b"submit_time,duration,gpus\n0,100,1\n10,100,1\n20,100,2\n"


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> list[str]:
    """The times that a worker was sent for."""
    settings.MEDIA_ROOT = tmp_path
    sent: list[str] = []
    for module in (actions, simulating):
        monkeypatch.setattr(module, "send_for_worker", lambda: sent.append("work"))
    return sent


def ask(root: User, **fields: Any) -> Simulation:
    return ask_simulation(root, Question(**fields))


@pytest.mark.slow
def test_a_trace_is_played_as_it_is_and_with_more_nodes(town: Town, root: User) -> None:
    town.node("n1", 1)
    file = ContentFile(OWN + b"x,y,z\n", name="mine.csv")
    asked = ask(root, trace=file, more_nodes=3, like_node="n1")
    run_next()
    asked.refresh_from_db()
    assert (asked.state, asked.share, asked.runs) == ("done", 1.0, ["as it is", "changed"])
    rows = {name: cells for name, *cells in asked.table}
    assert rows["Jobs finished"] == ["2", "3"], "the job of two devices needs two nodes"
    assert "3 jobs of mine" in asked.detail
    assert "1 lines could not be read; the first: line 5" in asked.detail
    assert len(asked.figures) == 4
    assert asked.title == "3 more like n1"


@pytest.mark.slow
def test_the_fleets_own_days_are_played_with_another_quota(town: Town, root: User) -> None:
    puppet = town.node("n1", 2)
    job = town.submit(expected_s=600.0)
    town.rest()
    puppet.ends[job.id] = 0
    town.rest()
    Job.objects.filter(pk=job.pk).update(worked_s=500.0)
    town.submit(expected_s=60.0)
    assert [each.duration_s for each in history(7).arrivals] == [500.0, 60.0]
    quota = {"tenant": "vision", "device_kind": "", "reserved": 0, "borrow": 0, "lend": True}
    asked = ask(root, days=7, quota=quota)
    run_next()
    asked.refresh_from_db()
    assert asked.state == "done", asked.detail
    assert asked.table[0] == ["Jobs finished", "2", "0"]


def test_what_cannot_be_played_says_why(town: Town, root: User, sent: list[str]) -> None:
    first = ask(root, days=7)
    second = ask(root, trace=ContentFile(b"a,b\n1,2\n", name="odd.csv"))
    sent.clear()
    run_next()
    assert sent == ["work"], "another one waits"
    run_next()
    for asked, words in ((first, "no job in the last 7 days"), (second, "no known format")):
        asked.refresh_from_db()
        assert asked.state == "failed"
        assert words in asked.detail


def test_one_is_played_at_a_time_and_a_silent_one_is_given_up(
    town: Town, root: User, sent: list[str]
) -> None:
    first, second = ask(root, days=1), ask(root, days=2)
    claimed = actions.claim_next()
    assert claimed == first
    assert actions.claim_next() is None
    give_up_silent(timezone.now())
    first.refresh_from_db()
    assert first.state == "running"
    sent.clear()
    give_up_silent(timezone.now() + timedelta(minutes=5))
    first.refresh_from_db()
    assert (first.state, sent) == ("failed", ["work"])
    assert actions.claim_next() == second


@pytest.mark.slow
def test_it_is_called_off_while_it_runs(
    town: Town, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.node("n1", 1)
    asked = ask(root, trace=ContentFile(OWN, name="mine.csv"))
    told: list[bool] = []

    def beside(case: Any, going_on: Any) -> None:
        told.append(going_on(1))
        cancel_simulation(root, asked)
        told.append(going_on(2))

    monkeypatch.setattr(simulating, "simulate_beside", beside)
    run_next()
    asked.refresh_from_db()
    assert told == [True, False]
    assert asked.state == "cancelled"
    assert 0 < asked.share < 1


def test_wrong_questions_are_refused_at_their_fields(town: Town, root: User, alice: User) -> None:
    for wrong, field in (
        ({}, "trace"),
        ({"days": 0}, "days"),
        ({"days": 1, "policy": "best"}, "policy"),
        ({"days": 1, "more_nodes": 1, "like_node": "nothing"}, "like_node"),
    ):
        with pytest.raises(Refused) as refusal:
            ask(root, **wrong)
        assert list(refusal.value.fields) == [field]
    for _ in range(actions.MOST_WAITING):
        ask(root, days=1)
    with pytest.raises(Refused) as refusal:
        ask(root, days=1)
    assert refusal.value.conflict
