"""What if, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.planner import PRESETS, Quota, Reason, Remedy, Tenant, plan
from scheduler.planner.outlook import forecast
from scheduler.planner.questions import (
    effect,
    expected_start,
    why_not_moved,
    with_drain,
    with_job,
    with_nodes,
    with_quota,
)
from tests.planner.sketches import NOW, given, job, node, told

POLICY = PRESETS["default"]


def test_it_starts_when_the_one_before_it_ends() -> None:
    runs = job("a", 4, on="n1", expected_s=1000.0, worked_s=400.0)
    snapshot = given([node("n1", 4)], [runs, job("b", 4), job("c", 4, submitted_at=NOW - 10)])
    start = expected_start(snapshot, POLICY, "b")
    assert (start.earliest, start.likely, start.latest) == (NOW + 300, NOW + 600, NOW + 1200)
    assert start.why is not None and start.why.reason is Reason.BUSY


def test_those_in_between_need_their_time_too() -> None:
    runs = job("a", 4, on="n1", expected_s=1000.0, worked_s=400.0)
    second = job("b", 4, expected_s=100.0)
    snapshot = given([node("n1", 4)], [runs, second, job("c", 4, submitted_at=NOW - 10)])
    assert forecast(snapshot, POLICY) == {"b": NOW + 600, "c": NOW + 700}


def test_at_once_and_never() -> None:
    snapshot = given([node("n1", 4)], [job("a", 4), job("z", 99)])
    start = expected_start(snapshot, POLICY, "a")
    assert start.earliest == start.latest == NOW
    never = expected_start(snapshot, POLICY, "z")
    assert never.likely is None and never.why is not None and never.why.reason.structural
    with pytest.raises(KeyError):
        expected_start(snapshot, POLICY, "nobody")


def test_without_expected_times_the_usual_one_is_taken() -> None:
    snapshot = given([node("n1", 4)], [job("a", 4, on="n1"), job("b", 4, expected_s=500.0)])
    likely = expected_start(snapshot, POLICY, "b").likely
    assert likely is not None and NOW < likely <= NOW + 500


def test_the_effect_of_a_quota() -> None:
    team = (Tenant(id="team", quotas={"a100": Quota(reserved=2)}),)
    jobs = [job("a", 2), job("b", 2, submitted_at=NOW - 1)]
    snapshot = given([node("n1", 4)], jobs, tenants=team)
    larger = with_quota(snapshot, "team", "a100", Quota(reserved=4))
    assert effect(snapshot, larger, POLICY).starts == ("b",)
    assert effect(larger, snapshot, POLICY).waits == ("b",)
    with pytest.raises(KeyError):
        with_quota(snapshot, "nobody", "a100", Quota())


def test_the_effect_of_a_drain_and_of_more_nodes() -> None:
    snapshot = given([node("n1", 4), node("n2", 4)], [job("a", 2, on="n1"), job("b", 8)])
    drained = effect(snapshot, with_drain(snapshot, ["n1"]), POLICY)
    assert drained.moved == ("a",)
    more = effect(snapshot, with_nodes(snapshot, "n2", 1), POLICY)
    assert more.starts == ("b",)
    with pytest.raises(KeyError):
        with_nodes(snapshot, "n9", 1)


def test_the_effect_of_a_submission() -> None:
    snapshot = given([node("n1", 4)], [job("a", 4, on="n1")])
    urgent = effect(snapshot, with_job(snapshot, job("new", 2, tier="premium")), POLICY)
    assert urgent.starts == ("new",)
    assert urgent.pushed_off == ("a",)
    assert told(tuple(urgent.answers.values()))["a"] == "preempt outranked"


def test_why_a_move_cannot_be_made() -> None:
    nodes = [node("n1", 4), node("n2", 4)]
    wish = job("a", 2, on="n1", move_asked=True)
    assert why_not_moved(given(nodes, [wish]), POLICY, "a") is None
    full = given(nodes, [wish, job("x", 4, on="n2")])
    why = why_not_moved(full, POLICY, "a")
    assert why is not None and why.reason is Reason.NO_OTHER_PLACE
    fixed = given(nodes, [replace(wish, remedy=Remedy.PAUSE)])
    why = why_not_moved(fixed, POLICY, "a")
    assert why is not None and why.reason is Reason.CANNOT_MOVE
    assert plan(full, POLICY) == ()
