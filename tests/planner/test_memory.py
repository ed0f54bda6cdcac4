"""What is remembered saves time and changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.planner import PRESETS, Memory, Roster, plan
from scheduler.planner import passes as passes_module
from tests.planner.sketches import NOW, given, job, node, told

POLICY = PRESETS["default"]


def test_a_cycle_that_broke_off_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    snapshot = given([node("n1", 4)], [job("a", 2), job("b", 2)])
    with monkeypatch.context() as broken:
        broken.setattr(passes_module, "spare", lambda draft: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            plan(snapshot, POLICY, memory)
    assert plan(snapshot, POLICY, memory) == plan(snapshot, POLICY)


def test_planning_twice_gives_the_same_plan() -> None:
    memory = Memory()
    snapshot = given([node("n1", 4)], [job("a", 4, on="n1"), job("b", 4, tier="premium")])
    first = plan(snapshot, POLICY, memory)
    assert plan(snapshot, POLICY, memory) == first
    assert plan(replace(snapshot, now=NOW - 5.0), POLICY, memory) == first


def test_protected_time_ends_while_nothing_else_happens() -> None:
    memory = Memory()
    young = job("young", 4, on="n1", started_at=NOW - 10.0)
    snapshot = given([node("n1", 4)], [young, job("high", 4, tier="premium")])
    assert told(plan(snapshot, POLICY, memory)) == {"high": "hold protected"}
    later = replace(snapshot, now=NOW + 400.0)
    assert told(plan(later, POLICY, memory))["young"] == "preempt outranked"


def test_another_policy_is_another_plan() -> None:
    memory = Memory()
    jobs = [job("x", 4, on="n1"), job("big", 8, submitted_at=1.0), job("small", 1)]
    snapshot = given([node("n1")], jobs)
    assert told(plan(snapshot, PRESETS["fifo"], memory))["small"] == "hold behind"
    assert told(plan(snapshot, PRESETS["fifo-backfill"], memory))["small"].startswith("place")


def test_a_node_that_comes_back_is_used() -> None:
    memory = Memory()
    snapshot = given([node("n1", 4, cordoned=True)], [job("a", 2)])
    snapshot = replace(snapshot, jobs=Roster(snapshot.jobs))
    assert told(plan(snapshot, POLICY, memory)) == {"a": "hold nodes_away"}
    back = replace(snapshot, nodes=(node("n1", 4),))
    assert told(plan(back, POLICY, memory)) == {"a": "place n1*2 fits"}
    more = replace(back, nodes=(*back.nodes, node("n0", 2)))
    assert told(plan(more, POLICY, memory)) == {"a": "place n0*2 fits"}
