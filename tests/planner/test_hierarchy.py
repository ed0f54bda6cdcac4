"""Planners that share a fleet by cluster."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given as drawn
from hypothesis import settings

from scheduler.planner import PRESETS, Hold, Policy, Quota, Snapshot, Tenant
from scheduler.planner.hierarchy import FLEET, Planners, homes, plan_by_cluster, share
from scheduler.planner.invariants import check
from scheduler.planner.paper import enacted
from tests.planner.sketches import given, job, node, told
from tests.planner.strategies import policies, snapshots

POLICY = PRESETS["default"]
NODES = [node("a1", cluster="a"), node("a2", cluster="a"), node("b1", cluster="b")]


def test_each_job_is_sent_to_the_cluster_with_most_room() -> None:
    jobs = [job("x", 8, on="a1"), job("y", 4, on="a2"), job("one", 6), job("wide", 12)]
    snapshot = given(NODES, jobs)
    assert homes(snapshot, POLICY) == {"one": "b", "wide": FLEET}
    assert {one.id for one in share(snapshot, {"one": "b"}, "b").jobs} == {"one"}
    assert {one.id for one in share(snapshot, {"one": "b"}, "a").jobs} == {"x", "y"}


def test_what_no_cluster_holds_is_left_to_the_pass_over_the_whole() -> None:
    found = told(plan_by_cluster(given(NODES, [job("wide", 24), job("one", 2)]), POLICY))
    assert found["one"].startswith("place")
    assert found["wide"].startswith("hold")
    found = told(plan_by_cluster(given(NODES, [job("wide", 24)]), POLICY))
    assert found["wide"] == "place a1*8+a2*8+b1*8 fits"


def test_nobody_is_pushed_off_while_another_cluster_has_room() -> None:
    jobs = [job("low", 16, on="a1*8 a2*8"), job("high", 8, tier="premium")]
    found = told(plan_by_cluster(given(NODES, jobs), POLICY))
    assert found == {"high": "place b1*8 fits"}


def test_all_planners_together_keep_to_the_limit() -> None:
    tight = (Tenant(id="team", quotas={"a100": Quota(reserved=4, borrow=4)}),)
    jobs = [job(f"j{index}", 4, submitted_at=1000.0 + index) for index in range(5)]
    snapshot = given(NODES, jobs, tenants=tight)
    found = told(plan_by_cluster(snapshot, POLICY))
    assert sum(what.startswith("place") for what in found.values()) == 2


def policy_for(policy: Policy) -> Policy:
    """Not those whose order is strict over the whole fleet."""
    return replace(policy, backfill=POLICY.backfill)


@settings(max_examples=40, deadline=None, derandomize=True)
@drawn(snapshots, policies)
def test_no_rule_is_broken(snapshot: Snapshot, policy: Policy) -> None:
    policy, planners = policy_for(policy), Planners()
    for _ in range(3):
        decided = plan_by_cluster(snapshot, policy, planners)
        assert check(snapshot, decided, policy) == []
        if all(isinstance(decision, Hold) for decision in decided):
            return
        snapshot = enacted(snapshot, decided)
