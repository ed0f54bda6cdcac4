"""What keeps the story from beginning is named with its remedy, and waited for."""

from __future__ import annotations

from typing import Any

import pytest

from portal.demo import room
from portal.demo.fleet import NotSoError
from portal.demo.room import wait_for_room
from tests.portal.demo.stand_in import StandIn, node


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ROOM_WITHIN_S", 0.05)


def test_an_idle_fleet_of_any_size_will_do(portal: StandIn) -> None:
    assert wait_for_room([portal.fleet()]) == (2, 2)
    assert portal.said == []


def test_another_job_is_named_and_waited_for(portal: StandIn) -> None:
    portal.add(7, name="sleeper", owner="ana")
    portal.soon(*[lambda: None] * 6, lambda: portal.jobs.clear())
    assert wait_for_room([portal.fleet(), portal.fleet()]) == (2, 2)
    assert "job 7 (sleeper, ana, running)" in portal.said[0]
    assert "cancel at http://portal/jobs/" in portal.said[0]


@pytest.mark.usefixtures("hurried")
def test_a_fleet_that_stays_busy_is_left_alone(portal: StandIn) -> None:
    portal.nodes[0]["devices"][0]["taken"] = True
    with pytest.raises(NotSoError, match="1 of node-a's devices are still held"):
        wait_for_room([portal.fleet()])


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"state": "draining"}, "node-a is draining; let jobs land on it again"),
        ({"state": "lost"}, "node-a is lost; its agent's log says why"),
        ({"devices": [{"sick": "too hot", "taken": False}]}, "a device of node-a is ill: too hot"),
        ({"devices": []}, r"2 to 8 nodes with equally many.* has 2 with 0 or 2"),
        (
            {"abilities": {"migrate": {"able": False, "reason": "criu is not installed"}}},
            "node-a: criu is not installed",
        ),
    ],
)
def test_a_node_that_will_not_do_is_told(
    portal: StandIn, change: dict[str, Any], told: str
) -> None:
    portal.nodes[0].update(change)
    with pytest.raises(NotSoError, match=told):
        wait_for_room([portal.fleet()])


def test_one_node_is_not_enough(portal: StandIn) -> None:
    portal.nodes = [node("node-a")]
    with pytest.raises(NotSoError, match="this fleet has 1 with 2"):
        wait_for_room([portal.fleet()])


def test_without_a_portal_it_says_how_to_start_one(portal: StandIn) -> None:
    portal.away = True
    with pytest.raises(NotSoError, match="Start everything with `make up`"):
        wait_for_room([portal.fleet()])
