"""Acts upon a job: the confirmation says what will happen, a refusal stays on the page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from portal.models import Job, Node, User
from tests.portal.api.conftest import place
from tests.portal.pages.conftest import Browser

Make = Callable[..., Job]
PANEL = {"HX-Request": "true"}


def test_cancelling_asks_first(browser: Browser, job: Job, alice: User) -> None:
    act = f"/jobs/{job.id}/do/cancel/"
    asked = browser(alice).get(act, headers=PANEL).content.decode()
    assert "gives up its devices" in asked
    job.refresh_from_db()
    assert job.state == "waiting"
    answer = browser(alice).post(act, headers=PANEL)
    assert answer["HX-Redirect"] == f"/jobs/{job.id}/"
    job.refresh_from_db()
    assert job.state == "cancelled"


def test_it_works_without_scripts_too(browser: Browser, job: Job, alice: User) -> None:
    act = f"/jobs/{job.id}/do/pause/"
    assert "<html" in browser(alice).get(act).content.decode()
    answer = browser(alice).post(act, follow=True)
    assert "gives its devices back" in answer.content.decode()
    job.refresh_from_db()
    assert job.state == "paused"
    browser(alice).post(f"/jobs/{job.id}/do/resume/")
    job.refresh_from_db()
    assert job.state == "waiting"


@pytest.mark.parametrize(
    ("state", "acts"),
    [
        ("waiting", {"pause", "cancel"}),
        ("running", {"pause", "checkpoint", "migrate", "resize", "cancel"}),
        ("paused", {"resume", "cancel"}),
        ("succeeded", set()),
    ],
)
def test_only_acts_that_fit_the_state_are_offered(
    browser: Browser, make_job: Make, alice: User, state: str, acts: set[str]
) -> None:
    job = make_job(state=state, replicas=2, fewest_devices=1)
    page = browser(alice).get(f"/jobs/{job.id}/").content.decode()
    known = ("pause", "resume", "checkpoint", "migrate", "resize", "cancel")
    assert {name for name in known if f"/do/{name}/" in page} == acts


def test_a_refusal_is_shown_where_it_was_asked(
    browser: Browser, make_job: Make, alice: User
) -> None:
    job = make_job(state="succeeded")
    answer = browser(alice).post(f"/jobs/{job.id}/do/cancel/", headers=PANEL)
    assert answer.status_code == 422
    assert "has ended" in answer.content.decode()


def test_a_move_can_name_a_node(browser: Browser, make_job: Make, node: Node, alice: User) -> None:
    job = make_job(state="running")
    place(job, node)
    act = f"/jobs/{job.id}/do/migrate/"
    assert "Anywhere else" in browser(alice).get(act, headers=PANEL).content.decode()
    refused = browser(alice).post(act, {"node": "node-a"}, headers=PANEL)
    assert "already runs on node-a" in refused.content.decode()
    assert browser(alice).post(act, {"node": ""}, headers=PANEL)["HX-Redirect"]
    job.refresh_from_db()
    assert job.move_asked


def test_a_resize_offers_the_sizes_that_are_possible(
    browser: Browser, make_job: Make, alice: User
) -> None:
    job = make_job(state="running", replicas=4, fewest_devices=1)
    form = browser(alice).get(f"/jobs/{job.id}/do/resize/").context["form"]
    assert [size for size, _ in form.fields["devices"].choices] == [4, 2, 1]
    browser(alice).post(f"/jobs/{job.id}/do/resize/", {"devices": "2"})
    job.refresh_from_db()
    assert job.asked_devices == 2


def test_an_unknown_act_is_no_page(browser: Browser, job: Job, alice: User) -> None:
    assert browser(alice).get(f"/jobs/{job.id}/do/explode/").status_code == 404
    assert browser(alice).get(f"/jobs/{job.id}/panels/explode/").status_code == 404


@pytest.mark.parametrize(
    ("remedy", "words"),
    [("transparent", "goes on at the same step"), ("requeue", "starts again from the beginning")],
)
def test_the_confirmation_tells_what_a_move_costs(
    browser: Browser, make_job: Make, alice: User, remedy: str, words: str
) -> None:
    job = make_job(state="running", remedy=remedy, verdict="node-a has no CRIU.")
    assert words in browser(alice).get(f"/jobs/{job.id}/do/migrate/").content.decode()
