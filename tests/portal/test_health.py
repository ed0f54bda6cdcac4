"""The health check is green only when every part answers, and names the one that does not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from portal import health
from portal.models import Lease, Node

pytestmark = pytest.mark.django_db


@pytest.fixture
def well() -> None:
    now = timezone.now()
    Lease.objects.create(name="cycle", beat_at=now)
    Node.objects.create(name="node-a", token_digest="a", connected=True, heard_at=now)


def parts(client: Client, status: int) -> dict[str, str]:
    answer = client.get("/healthz")
    assert answer.status_code == status
    assert answer["Cache-Control"].find("no-store") >= 0
    return dict(answer.json()["parts"])


def test_green_when_every_part_answers(client: Client, well: None) -> None:
    assert set(parts(client, 200).values()) == {"ok"}


def test_a_fresh_home_is_not_green(client: Client) -> None:
    told = parts(client, 503)
    assert (told["database"], told["broker"]) == ("ok", "ok")
    assert told["planner"] == "no cycle within the last 15 s"
    assert told["agents"] == "no node was heard within its lease"


def test_a_planner_that_stopped_is_named(client: Client, well: None) -> None:
    Lease.objects.update(beat_at=timezone.now() - timedelta(minutes=1))
    assert [name for name, told in parts(client, 503).items() if told != "ok"] == ["planner"]


@pytest.mark.parametrize(
    "change",
    [
        {"connected": False},
        {"heard_at": timezone.now() - timedelta(minutes=5)},
        {"lost_at": timezone.now()},
    ],
)
def test_a_node_that_is_away_does_not_count(
    client: Client, well: None, change: dict[str, object]
) -> None:
    Node.objects.update(**change)
    assert [name for name, told in parts(client, 503).items() if told != "ok"] == ["agents"]


def test_what_a_part_runs_into_is_told_by_name_alone(
    client: Client, well: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise ConnectionError("redis://user:secret@host")

    monkeypatch.setitem(health.CHECKS, "broker", fail)
    assert parts(client, 503)["broker"] == "does not answer (ConnectionError)"
