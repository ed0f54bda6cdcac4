"""Planners that share a fleet by cluster."""

from __future__ import annotations

from hypothesis import given as drawn
from hypothesis import settings

from scheduler.planner import PRESETS, Hold, Place, Policy, Quota, Snapshot, Tenant, plan
from scheduler.planner.hierarchy import Atlas, Planners, plan_by_cluster, share
from scheduler.planner.invariants import check
from scheduler.planner.paper import enacted
from tests.planner.sketches import given, job, node, told
from tests.planner.strategies import policies, snapshots

POLICY = PRESETS["default"]
NODES = [node("a1", cluster="a"), node("a2", cluster="a"), node("b1", cluster="b")]


def homes(snapshot: Snapshot, policy: Policy = POLICY) -> dict[str, str]:
    return {**Atlas().homes(snapshot, plan(snapshot, policy))}


def test_a_job_is_sent_where_the_whole_would_place_it() -> None:
    jobs = [job("x", 8, on="a1"), job("y", 4, on="a2"), job("one", 6), job("wide", 12)]
    snapshot = given(NODES, jobs)
    assert homes(snapshot) == {"one": "b"}
    assert {one.id for one in share(snapshot, {"one": "b"}, "b").jobs} == {"one"}
    assert {one.id for one in share(snapshot, {"one": "b"}, "a").jobs} == {"x", "y"}


def test_gangs_that_span_clusters_stay_with_the_whole() -> None:
    snapshot = given(NODES, [job("wide", 24)])
    assert homes(snapshot) == {}
    assert told(plan_by_cluster(snapshot, POLICY))["wide"] == "place a1*8+a2*8+b1*8 fits"
    assert homes(given(NODES, [job("gang", 16)])) == {"gang": "a"}


def test_nobody_is_sent_to_devices_that_others_have_yet_to_leave() -> None:
    jobs = [job("low", 24, on="a1*8 a2*8 b1*8"), job("high", 8, tier="premium")]
    found = told(plan_by_cluster(given(NODES, jobs), POLICY))
    assert found["high"].startswith("place") and found["low"].startswith(("preempt", "resize"))
    assert homes(given(NODES, jobs)) == {}


def test_nobody_is_pushed_off_while_another_cluster_has_room() -> None:
    jobs = [job("low", 16, on="a1*8 a2*8"), job("high", 8, tier="premium")]
    found = told(plan_by_cluster(given(NODES, jobs), POLICY))
    assert found == {"high": "place b1*8 fits"}


def test_only_who_gets_all_it_asked_for_is_sent() -> None:
    jobs = [job("full", 20, on="a1*8 a2*8 b1*4"), job("small", 8, fewest_devices=2)]
    snapshot = given(NODES, jobs)
    assert told(plan(snapshot, POLICY))["small"] == "place b1*4 started_small"
    assert homes(snapshot) == {}


def test_a_kind_that_was_left_open_is_not_left_to_a_cluster_of_several() -> None:
    mixed = [*NODES, node("b2", cluster="b", kind="h100")]
    full = job("full", 16, on="a1*8 a2*8")
    assert homes(given(mixed, [full, job("any", 2)])) == {}
    assert homes(given(mixed, [full, job("one", 2, device_kind="h100")])) == {"one": "b"}


def test_a_fleet_without_clusters_is_planned_as_one() -> None:
    bare = [node("n1"), node("n2")]
    assert homes(given(bare, [job("one", 2)])) == {}
    assert homes(given([*bare, node("a1", cluster="a")], [job("one", 2)])) == {}


def test_all_planners_together_keep_to_the_limit() -> None:
    tight = (Tenant(id="team", quotas={"a100": Quota(reserved=4, borrow=4)}),)
    jobs = [job(f"j{index}", 4, submitted_at=1000.0 + index) for index in range(5)]
    snapshot = given(NODES, jobs, tenants=tight)
    found = told(plan_by_cluster(snapshot, POLICY))
    assert sum(what.startswith("place") for what in found.values()) == 2


def test_who_waits_has_the_reason_of_the_whole_fleet() -> None:
    tight = (Tenant(id="team", quotas={"a100": Quota(reserved=4, borrow=4)}),)
    jobs = [job("x", 8, on="a1"), job("late", 4), job("far", 32, tenant="other")]
    snapshot = given(NODES, jobs, tenants=(*tight, Tenant(id="other")))
    assert told(plan_by_cluster(snapshot, POLICY)) == told(plan(snapshot, POLICY))


@settings(max_examples=40, deadline=None, derandomize=True)
@drawn(snapshots, policies)
def test_no_rule_is_broken(snapshot: Snapshot, policy: Policy) -> None:
    planners = Planners()
    for _ in range(3):
        decided = plan_by_cluster(snapshot, policy, planners)
        assert check(snapshot, decided, policy) == []
        if all(isinstance(decision, Hold) for decision in decided):
            return
        snapshot = enacted(snapshot, decided)


@settings(max_examples=40, deadline=None, derandomize=True)
@drawn(snapshots, policies)
def test_as_many_are_placed_as_by_one_planner(snapshot: Snapshot, policy: Policy) -> None:
    """Whoever one planner would place is placed by many, if not in this round, then in the next."""
    alone = {one.job for one in plan(snapshot, policy) if isinstance(one, Place)}
    first = plan_by_cluster(snapshot, policy)
    sent = {one.job for one in first if isinstance(one, Hold) and one.why.reason == "sent"}
    placed = {one.job for one in first if isinstance(one, Place)}
    assert placed | sent == alone
    assert placed or not alone
