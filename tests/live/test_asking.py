"""Questions are answered from the live fleet and change nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command

from portal.actions.asking import question_of
from portal.actions.submitting import JobRequest
from portal.models import Decision, Placement, Quota
from scheduler.live.asking import answer_question
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
