"""The fleet: tiles, what they tell to whom, and the figures of the charts."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from portal import telemetry
from portal.models import FleetSample, Job, Node, User
from portal.views import fleet
from tests.portal.api.conftest import make_node, place
from tests.portal.pages.conftest import Browser


def test_an_empty_fleet_says_what_to_do_first(browser: Browser, alice: User, root: User) -> None:
    assert "Add a node" in browser(root).get("/").content.decode()
    assert "Add a node" not in browser(alice).get("/").content.decode()


def test_a_tile_leads_to_its_job_for_those_who_may_see_it(
    browser: Browser, make_job: Callable[..., Job], node: Node, alice: User, charlie: User
) -> None:
    job = make_job("resnet", state="running")
    place(job, node)
    page = browser(alice).get("/").content.decode()
    assert f'href="/jobs/{job.id}/" class="tile running"' in page
    hidden = browser(charlie).get("/").content.decode()
    assert "resnet" not in hidden
    assert "used by another tenant" in hidden


def test_tiles_show_use_and_memory(
    browser: Browser, make_job: Callable[..., Job], node: Node, alice: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    place(make_job(state="running"), node)
    now = {"utilisation": 0.52, "memory": 2**29, "power": 310.0}

    def latest(names: Any) -> dict[str, Any]:
        return {name: {"at": 0.0, "devices": {"cpu0": now}} for name in names}

    monkeypatch.setattr(telemetry, "latest", latest)
    page = browser(alice).get("/").content.decode()
    tile = re.search(r'<a href="/jobs/\d+/" class="tile running"[^>]*>', page)
    assert tile
    assert 'data-use="5"' in tile[0]
    assert 'data-memory="5"' in tile[0]
    assert "26 %" in page  # one device of two is used by half


def test_status_is_said_in_words_too(browser: Browser, node: Node, alice: User) -> None:
    node.draining, node.note = True, "new cards"
    node.save()
    node.devices.filter(uid="cpu1").update(sick="memory errors")
    page = browser(alice).get("/").content.decode()
    assert "Draining" in page
    assert "new cards" in page
    assert "sick: memory errors" in page


def test_history_names_only_the_tenants_of_the_user(
    browser: Browser, alice: User, charlie: User, root: User
) -> None:
    at = timezone.now() - timedelta(minutes=3)
    tenants = {"vision": 3, "language": 2, "speech": 1}
    FleetSample.objects.create(at=at, devices=8, allocated=6, utilisation=4.5, tenants=tenants)
    seen = browser(alice).get("/fleet/history/?hours=1").json()
    assert seen["tenants"] == {"vision": [3.0], "other tenants": [3.0]}
    assert (seen["devices"], seen["allocated"], seen["utilisation"]) == ([8], [6], [4.5])
    assert set(browser(root).get("/fleet/history/").json()["tenants"]) >= {"vision", "language"}


def test_history_is_thinned_out_to_what_a_chart_can_show(browser: Browser, alice: User) -> None:
    now = timezone.now()
    FleetSample.objects.bulk_create(
        FleetSample(at=now - timedelta(minutes=minute), devices=1) for minute in range(1, 1500)
    )
    assert len(browser(alice).get("/fleet/history/?hours=24").json()["at"]) < 720


def test_the_metric_and_the_range_live_in_the_address(browser: Browser, alice: User) -> None:
    page = browser(alice).get("/?metric=owner&hours=24").content.decode()
    assert 'data-metric="owner"' in page
    assert "hours=24" in page
    assert browser(alice).get("/?metric=x&hours=99999999999999999999").status_code == 200


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a fleet of more than two devices be large."""
    monkeypatch.setattr(fleet, "TILES", 2)


def test_a_large_fleet_is_drawn_cluster_by_cluster(
    browser: Browser, make_job: Callable[..., Job], node: Node, alice: User, charlie: User,
    large: None,
) -> None:  # fmt: skip
    job = make_job("resnet", state="running")
    place(job, node)
    other = make_node("node-b")
    Node.objects.filter(pk=other.pk).update(region="eu", cluster="c1", rack="r1", draining=True)
    other.devices.filter(uid="cpu1").update(sick="memory errors")

    page = browser(alice).get("/").content.decode()
    assert page.count("<canvas") == 2
    assert 'class="tile' not in page
    assert "?region=eu&amp;cluster=c1&amp;rack=r1" in page

    told = browser(alice).get("/fleet/survey/").json()
    held = told["clusters"][0]["racks"][0][1][0]
    assert held[:3] == ["node-a", "well", [job.id, 0]]
    assert told["jobs"] == {str(job.id): ["resnet", "vision"]}
    assert (told["devices"], told["held"]) == (3, 1)
    assert told["clusters"][1]["racks"] == [
        ["r1", [["node-b", "draining", [0, 0], [-1, -1], [-1, -1], [1]]]]
    ]
    hidden = browser(charlie).get("/fleet/survey/").json()
    assert hidden["clusters"][0]["racks"][0][1][0][2] == [-1, 0]
    assert hidden["jobs"] == {}


def test_a_part_of_a_large_fleet_has_tiles_again(
    browser: Browser, node: Node, alice: User, large: None
) -> None:
    Node.objects.filter(pk=make_node("node-b").pk).update(region="eu", cluster="c1")
    page = browser(alice).get("/?region=eu&cluster=c1").content.decode()
    assert page.count("data-device=") == 2
    assert "node-a" not in page
    assert "Whole fleet" in page
    assert "data-polled" in page
    assert browser(alice).get("/?region=nowhere").status_code == 200
