"""What the planner would do is told beside forms and on a waiting job, and never in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache

from portal.models import Job, Node, Tenant, User
from portal.refusals import Refused
from tests.portal.api.conftest import place
from tests.portal.pages.conftest import Browser
from tests.portal.pages.test_submit import FORM

NOBODY: dict[str, Any] = {
    kind: [] for kind in ("starts", "waits", "pushed_off", "moved", "resized")
}
BAND = {"earliest_s": 300.0, "likely_s": 720.0, "latest_s": 1500.0, "sentence": "All are busy."}


class Planner:
    """Answers as a test says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {}
        self.asked: list[dict[str, Any]] = []

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(question)
        if not self.answer:
            raise Refused("The planner is busy.", id="no-answer", conflict=True)
        return self.answer


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> Planner:
    stand_in = Planner()
    monkeypatch.setattr("portal.views.asking.ask", stand_in.ask)
    monkeypatch.setattr("portal.actions.asking.ask", stand_in.ask)
    cache.clear()
    return stand_in


def test_a_waiting_job_shows_when_it_is_expected_to_start(
    browser: Browser, job: Job, alice: User, planner: Planner
) -> None:
    page = browser(alice).get(f"/jobs/{job.id}/").content.decode()
    assert f'hx-get="/jobs/{job.id}/start/" hx-trigger="load' in page
    assert planner.asked == []
    planner.answer = BAND
    told = browser(alice).get(f"/jobs/{job.id}/start/").content.decode()
    assert "in 11 min</time>; at best" in told
    assert "in 24 min</time>." in told
    planner.answer = {**BAND, "earliest_s": None, "likely_s": None, "latest_s": None}
    assert b"Not expected to start" in browser(alice).get(f"/jobs/{job.id}/start/").content


def test_a_busy_planner_leaves_the_page_as_it_is(
    browser: Browser, job: Job, alice: User, planner: Planner
) -> None:
    answer = browser(alice).get(f"/jobs/{job.id}/start/")
    assert (answer.status_code, answer.content) == (200, b"")


def test_only_waiting_jobs_that_one_may_see_are_asked_about(
    browser: Browser, make_job: Callable[..., Job], alice: User, charlie: User, planner: Planner
) -> None:
    running = make_job(state="running")
    answer = browser(alice).get(f"/jobs/{running.id}/start/")
    assert (answer.status_code, answer.content) == (286, b"")
    assert browser(charlie).get(f"/jobs/{make_job().id}/start/").status_code == 404
    assert planner.asked == []


def test_a_submission_says_when_it_starts_and_what_it_displaces(
    browser: Browser, node: Node, make_job: Callable[..., Job], alice: User, language: Tenant,
    planner: Planner,
) -> None:  # fmt: skip
    mine, theirs = make_job("mine", state="running"), make_job("theirs", tenant=language)
    client = browser(alice)
    assert 'hx-post="/jobs/new/start/"' in client.post("/jobs/check/", FORM).content.decode()
    planner.answer = {**BAND, **NOBODY, "pushed_off": [mine.id, theirs.id]}
    told = client.post("/jobs/new/start/", FORM).content.decode()
    assert "in 11 min" in told
    assert "All are busy." in told
    assert "2 jobs would be pushed off" in told
    assert "mine" in told
    assert "theirs" not in told
    assert planner.asked[0]["job"]["replicas"] == 2
    planner.answer = {**BAND, **NOBODY, "likely_s": 0}
    renamed = client.post("/jobs/new/start/", {**FORM, "name": "another"}).content.decode()
    assert "2 jobs would be pushed off" in renamed, "the question is the same, and so the answer"
    assert len(planner.asked) == 1
    told = client.post("/jobs/new/start/", {**FORM, "replicas": "1"}).content.decode()
    assert "would start it now" in told
    assert "displaces nobody" in told
    assert Job.objects.count() == 2


def test_a_form_that_is_wrong_is_not_asked_about(
    browser: Browser, node: Node, alice: User, planner: Planner
) -> None:
    client = browser(alice)
    for wrong in ({"command": ""}, {"replicas": "50"}):
        assert client.post("/jobs/new/start/", {**FORM, **wrong}).content == b""
    assert planner.asked == []
    assert b"planner is busy" in client.post("/jobs/new/start/", FORM).content


def test_a_drain_says_how_many_move_and_for_how_long(
    browser: Browser, make_job: Callable[..., Job], node: Node, alice: User, root: User,
    planner: Planner,
) -> None:  # fmt: skip
    place(make_job("there", state="running"), node)
    shown = browser(root).get("/nodes/node-a/drain/").content.decode()
    assert 'hx-get="/nodes/node-a/drain/effect/"' in shown
    each = {"1": 38.0, "2": 42.0}
    planner.answer = {**NOBODY, "running_there": [1, 2], "moved": [1, 2], "seconds_each": each}
    told = browser(root).get("/nodes/node-a/drain/effect/").content.decode()
    assert "Drains node-a:</strong> 2 jobs move at once, about 40 s each; none stops." in told
    planner.answer |= {"moved": [1], "pushed_off": [9]}
    told = browser(root).get("/nodes/node-a/drain/effect/").content.decode()
    assert "1 job moves at once, about 38 s each; 1 job stays until there is room" in told
    assert "1 job would be pushed off" in told
    assert browser(alice).get("/nodes/node-a/drain/effect/").status_code == 403


def test_a_quota_tells_its_effect_before_it_is_saved(
    browser: Browser, vision: Tenant, job: Job, alice: User, root: User, planner: Planner
) -> None:
    there = vision.quotas.get()
    address = f"/tenants/vision/quotas/{there.id}/effect/"
    shown = browser(root).get(f"/tenants/vision/quotas/{there.id}/").content.decode()
    assert f'hx-post="{address}"' in shown
    values = {"quota-reserved": "12", "quota-borrow": "", "quota-lend": "on"}
    planner.answer = {**NOBODY, "starts": [job.id]}
    told = browser(root).post(address, values).content.decode()
    assert "1 job would start at once" in told
    assert planner.asked[0] == {
        "question": "quota", "tenant": "vision", "device_kind": "", "reserved": 12,
        "borrow": None, "lend": True,
    }  # fmt: skip
    planner.answer = NOBODY
    assert b"changes nothing at once" in browser(root).post(address, values).content
    assert browser(root).post(address, {"quota-reserved": "-1"}).content == b""
    assert browser(alice).post(address, values).status_code == 403
    there.refresh_from_db()
    assert there.reserved == 8
