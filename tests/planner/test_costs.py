"""What a move costs, by default and as learned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.planner import PRESETS, Link, Memory, MoveCost, Policy, Remedy, plan
from scheduler.planner.costs import Roads, loss, move_s
from scheduler.planner.fleet import Fleet
from tests.planner.sketches import given, job, node, told

POLICY = Policy(move_s=20.0, bandwidth=1e9)


def test_twenty_seconds_and_the_bytes_until_something_was_measured() -> None:
    assert move_s(job("a", bytes=5_000_000_000), POLICY) == 25.0
    seen = MoveCost(checkpoint_s=3.0, transfer_s=2.0, restore_s=1.0)
    assert move_s(job("a", cost=seen), POLICY) == 6.0


def test_what_is_lost_grows_with_work_at_stake_and_devices() -> None:
    safe = given([node("n1", 4)], [job("a", 4, on="n1")]).jobs[0]
    assert loss(safe, POLICY, 0.0) == 20.0 * 4
    stake = replace(safe, remedy=Remedy.REQUEUE, at_stake_s=100.0)
    paused = replace(safe, remedy=Remedy.PAUSE)
    assert loss(stake, POLICY, 0.0) > loss(safe, POLICY, 0.0) > loss(paused, POLICY, 0.0)


PLACES = [
    node("a1", 4, rack="r1", cluster="a"),
    node("a2", 4, rack="r1", cluster="a"),
    node("a3", 4, rack="r2", cluster="a"),
    node("b1", 4, rack="r9", cluster="b"),
]
GIGABYTE = 1_000_000_000


def roads(*links: Link) -> Roads:
    return Roads(links, Fleet(tuple(PLACES)).hosts)


def test_ways_are_learned_per_pair_of_nodes_and_for_pairs_like_it() -> None:
    seen = roads(Link(source="a1", target="b1", rate=1e8, samples=8))
    assert seen.rate("a1", "b1", POLICY) == pytest.approx(1e8)
    assert seen.rate("a2", "b1", POLICY) == pytest.approx(1e8), "as far as the one that was seen"
    assert seen.rate("a1", "a2", POLICY) == POLICY.bandwidth, "nothing like it was seen"


def test_one_sample_is_blended_with_what_is_usual() -> None:
    once = roads(
        Link(source="a1", target="a2", rate=1e6),
        Link(source="a2", target="a1", rate=1e8),
        Link(source="a3", target="a3", rate=5e8),
        Link(source="a1", target="a1", rate=5e8),
        Link(source="a2", target="a1", rate=1e8),
    )
    assert 1e6 < once.rate("a1", "a2", POLICY) < 1e8


def test_a_move_costs_what_its_way_costs() -> None:
    (one,) = given([node("a1", 4)], [job("a", 4, on="a1", bytes=4 * GIGABYTE)]).jobs
    slow = roads(Link(source="a1", target="b1", rate=1e7, samples=9))
    assert move_s(one, POLICY, slow, ["a2"]) == pytest.approx(24.0)
    assert move_s(one, POLICY, slow, ["b1"]) == pytest.approx(420.0)
    known = replace(one, cost=MoveCost(checkpoint_s=1.0, transfer_s=4.0, restore_s=1.0, samples=8))
    assert move_s(known, POLICY, slow) == 6.0
    assert move_s(known, POLICY, slow, ["b1"]) == pytest.approx(2.0 + (4.0 + 400.0) / 2)


def test_the_slowest_replica_counts() -> None:
    jobs = [job("a", 2, on="a1*1 a2*1", bytes=2 * GIGABYTE)]
    (one,) = given(PLACES, jobs).jobs
    slow = roads(Link(source="a2", target="b1", rate=1e7, samples=9))
    assert move_s(one, POLICY, slow, ["a3", "b1"]) == pytest.approx(120.0)
    assert move_s(one, POLICY, slow, ["a3", "a1"]) == pytest.approx(21.0)
    assert move_s(one, POLICY, slow, ["a3", "a3"]) == pytest.approx(22.0), "they share the way"


def test_nobody_moves_over_a_way_that_costs_more_than_it_gains() -> None:
    nodes = [node("n1", 4), node("n2", 4)]
    jobs = [
        job("a", 2, on="n1", bytes=100 * GIGABYTE),
        job("b", 2, on="n2", bytes=100 * GIGABYTE),
        job("wide", 4, each=4, expected_s=2000.0),
    ]
    snapshot = given(nodes, jobs)
    policy = replace(PRESETS["default"], preemption=False)
    assert "gap" in told(plan(snapshot, policy)).get("a", told(plan(snapshot, policy)).get("b"))
    slow = tuple(
        Link(source=one, target=other, rate=1e6, samples=9)
        for one, other in (("n1", "n2"), ("n2", "n1"))
    )
    memory = Memory()
    plan(snapshot, policy, memory)
    learned = replace(snapshot, links=slow)
    assert plan(learned, policy, memory) == plan(learned, policy)
    assert told(plan(learned, policy))["wide"].startswith("hold")
