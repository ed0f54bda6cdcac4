"""What a move costs, by default and as learned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.planner import MoveCost, Policy, Remedy
from scheduler.planner.costs import Costs, default_cost, loss, move_s
from tests.planner.sketches import given, job, node

POLICY = Policy(move_s=20.0, bandwidth=1e9)


def test_twenty_seconds_and_the_bytes_until_something_was_measured() -> None:
    assert default_cost(5_000_000_000, POLICY).total_s == 25.0
    assert move_s(job("a", bytes=5_000_000_000), POLICY) == 25.0
    seen = MoveCost(checkpoint_s=3.0, transfer_s=2.0, restore_s=1.0)
    assert move_s(job("a", cost=seen), POLICY) == 6.0


def test_what_is_lost_grows_with_work_at_stake_and_devices() -> None:
    safe = given([node("n1", 4)], [job("a", 4, on="n1")]).jobs[0]
    assert loss(safe, POLICY) == 20.0 * 4
    stake = replace(safe, remedy=Remedy.REQUEUE, at_stake_s=100.0)
    paused = replace(safe, remedy=Remedy.PAUSE)
    assert loss(stake, POLICY) > loss(safe, POLICY) > loss(paused, POLICY)


def test_costs_are_learned_per_job_and_per_pair_of_nodes() -> None:
    costs = Costs(policy=POLICY)
    gigabyte = 1_000_000_000
    first = costs.estimate("a", gigabyte, "n1", "n2")
    assert first.total_s == 21.0
    seen = MoveCost(checkpoint_s=2.0, transfer_s=10.0, restore_s=2.0, samples=1)
    for _ in range(20):
        costs = costs.learned("a", "n1", "n2", gigabyte, seen)
    assert costs.estimate("a", gigabyte).total_s == pytest.approx(14.0, abs=1.5)
    other = costs.estimate("b", gigabyte, "n1", "n2")
    assert other.transfer_s == pytest.approx(10.0)
    assert costs.estimate("b", gigabyte, "n2", "n1").transfer_s == 1.0
