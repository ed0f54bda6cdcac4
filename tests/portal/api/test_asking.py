"""Who may ask what, and what is refused before the planner is troubled."""

from __future__ import annotations

from typing import Any

import pytest

from portal.models import Job, Node, User
from tests.portal.api.conftest import Api

WHAT_IF = "/api/v1/what-if/"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The questions that reached the planner."""
    questions: list[dict[str, Any]] = []

    def ask(question: dict[str, Any]) -> dict[str, Any]:
        questions.append(question)
        return {"likely_s": 5.0, "earliest_s": 1.0, "latest_s": 9.0, "sentence": "Busy."}

    monkeypatch.setattr("portal.api.asking.ask", ask)
    return questions


def post(api: Api, user: User, body: dict[str, Any]) -> Any:
    return api(user).post(WHAT_IF, body, content_type="application/json")


def test_a_member_asks_about_a_job_and_a_stranger_does_not(
    alice: User, charlie: User, api: Api, job: Job, asked: list[dict[str, Any]]
) -> None:
    body = {"question": "start", "job": job.id}
    assert post(api, alice, body).json()["likely_s"] == 5.0
    assert post(api, charlie, body).status_code == 404
    assert asked == [body]


def test_a_submission_is_checked_before_it_is_asked_about(
    alice: User, api: Api, node: Node, asked: list[dict[str, Any]]
) -> None:
    wish = {"tenant": "vision", "tier": "basic", "command": ["true"]}
    assert post(api, alice, {"question": "submit", "job": wish}).status_code == 200
    assert asked[0]["job"]["replicas"] == 1
    wrong = post(api, alice, {"question": "submit", "job": {**wish, "tier": "gold"}})
    assert (wrong.status_code, "tier" in wrong.json()["fields"]) == (400, True)


def test_only_admins_ask_about_quotas_drains_and_nodes(
    alice: User, root: User, api: Api, node: Node, asked: list[dict[str, Any]]
) -> None:
    for body in (
        {"question": "drain", "nodes": [node.name]},
        {"question": "nodes", "like": node.name, "count": 2},
        {"question": "quota", "tenant": "vision", "reserved": 1},
    ):
        assert post(api, alice, body).status_code == 403
        assert post(api, root, body).status_code == 200
    assert len(asked) == 3


def test_a_question_that_nobody_knows(alice: User, api: Api, asked: list[dict[str, Any]]) -> None:
    answer = post(api, alice, {"question": "why"})
    assert answer.status_code == 400
    assert "question" in answer.json()["fields"]
