"""Questions are answered from the live fleet and change nothing."""

from __future__ import annotations

import io
import itertools
import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from portal.actions.asking import question_of
from portal.actions.submitting import JobRequest
from portal.models import Decision, Job, Placement, Quota
from scheduler.live.asking import Informed, TooBusyError, answer_question
from tests.live.puppets import Town


def test_when_a_waiting_job_would_start(town: Town) -> None:
    town.node("n1", 1)
    town.submit(expected_s=600.0)
    town.rest()
    waiting = town.submit()
    town.rest()
    answer = answer_question({"question": "start", "job": waiting.id})
    assert answer["earliest_s"] <= answer["likely_s"] <= answer["latest_s"]
    assert 0 < answer["likely_s"] <= 600
    assert answer["sentence"]


def test_what_a_submission_would_displace(town: Town) -> None:
    town.node("n1", 1)
    lesser = town.submit("basic")
    town.rest()
    before = (Placement.objects.count(), Decision.objects.count())
    request = JobRequest(tenant="vision", tier="premium", command=["true"])
    answer = answer_question(question_of(town.user, request))
    assert answer["likely_s"] == 0
    assert answer["pushed_off"] == [lesser.id]
    assert (Placement.objects.count(), Decision.objects.count()) == before


def test_what_more_nodes_and_a_drain_would_do(town: Town) -> None:
    town.node("n1", 1)
    running = town.submit()
    town.rest()
    waiting = town.submit()
    town.rest()
    more = answer_question({"question": "nodes", "like": "n1", "count": 1})
    assert more["starts"] == [waiting.id]
    drain = answer_question({"question": "drain", "nodes": ["n1"]})
    assert drain["running_there"] == [running.id]


def test_what_another_quota_would_do(town: Town) -> None:
    town.node("n1", 2)
    town.submit()
    town.rest()
    quota = {"question": "quota", "tenant": "vision", "device_kind": "", "reserved": 0}
    answer = answer_question({**quota, "borrow": 0, "lend": True})
    assert set(answer) == {"starts", "waits", "pushed_off", "moved", "resized"}


def test_a_quota_for_every_kind_counts_for_each_kind_of_the_fleet(town: Town) -> None:
    Quota.objects.update(reserved=1, borrow=0)
    town.node("n1", 2)
    town.submit()
    waiting = town.submit()
    town.rest()
    quota = {"question": "quota", "tenant": "vision", "device_kind": "", "borrow": 0, "lend": True}
    assert answer_question({**quota, "reserved": 1})["starts"] == []
    assert answer_question({**quota, "reserved": 2})["starts"] == [waiting.id]


@pytest.fixture
def _slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves with every look at it, and not with the machine."""
    looks, began = itertools.count(), timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: began + timedelta(microseconds=next(looks)))


@pytest.mark.usefixtures("_slow_clock")
def test_what_is_known_from_earlier_questions_changes_no_answer(town: Town) -> None:
    dice, informed = random.Random(3), Informed()
    for number in range(3):
        town.node(f"n{number}", dice.choice((1, 2, 4)))
    for _ in range(6):
        tier = dice.choice(("basic", "standard", "premium"))
        town.submit(tier, replicas=dice.choice((1, 2, 4)), expected_s=dice.choice((None, 900.0)))
        if dice.random() < 0.5:
            town.rest()
        request = JobRequest(tenant="vision", tier=tier, command=["true"], replicas=2)
        quota = {"tenant": "vision", "device_kind": "", "reserved": dice.randrange(5)}
        waiting = Job.objects.filter(state="waiting").order_by("id").values_list("id", flat=True)
        asked = [
            question_of(town.user, request),
            {"question": "drain", "nodes": [f"n{dice.randrange(3)}"]},
            {"question": "quota", **quota, "borrow": dice.randrange(4), "lend": True},
            {"question": "nodes", "like": "n1", "count": 2},
            *({"question": "start", "job": id} for id in waiting[:2]),
        ]
        dice.shuffle(asked)
        for question in asked:
            assert close(answer_question(question, informed), answer_question(question, Informed()))


def close(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two answers are the same but for the moment between them."""
    return one.keys() == other.keys() and all(
        value == other[name]
        if not name.endswith("_s") or None in (value, other[name])
        else abs(value - other[name]) < 1
        for name, value in one.items()
    )


def test_a_forecast_is_kept_while_the_fleet_stays_as_it_is(town: Town) -> None:
    town.node("n1", 1)
    running = town.submit(expected_s=600.0)
    town.rest()
    first, second = town.submit(expected_s=60.0), town.submit(expected_s=60.0)
    town.rest()
    informed = Informed()
    soon = answer_question({"question": "start", "job": first.id}, informed)
    later = answer_question({"question": "start", "job": second.id}, informed)
    assert soon["likely_s"] < later["likely_s"]
    Job.objects.filter(pk=running.pk).update(expected_s=6000.0)
    put_off = answer_question({"question": "start", "job": first.id}, informed)
    assert put_off["likely_s"] > soon["likely_s"] + 5000


def test_nobody_is_answered_who_has_given_up(town: Town) -> None:
    town.node("n1", 1)
    informed = Informed()
    question = {"question": "nodes", "like": "n1", "count": 1}
    with informed.look(), pytest.raises(TooBusyError):
        answer_question(question, informed, patience_s=0.01)
    assert answer_question(question, informed, patience_s=0.01)["starts"] == []


def test_a_saved_case_is_planned_the_same_again(town: Town, tmp_path: Path) -> None:
    town.node("n1", 1)
    town.submit(secrets={"KEY": "s3cret"}), town.submit()
    file = tmp_path / "case.json"
    call_command("save_snapshot", file, stdout=io.StringIO())
    assert "s3cret" not in file.read_text()
    said = io.StringIO()
    call_command("replay_snapshot", file, stdout=said)
    assert "2 decisions" in said.getvalue()

    case = json.loads(file.read_text())
    case["plan"] = case["plan"][:1]
    file.write_text(json.dumps(case))
    with pytest.raises(SystemExit):
        call_command("replay_snapshot", file, stdout=said)
    assert "differs" in said.getvalue()
