"""The benchmarks of the planner run, on fleets of a size for tests; no time is asserted."""

from __future__ import annotations

import argparse

from tests.benchmarks import planner, safety, thrash


def test_the_speed_benchmark_answers_everyone() -> None:
    options = argparse.Namespace(
        nodes=40, gpus_per_node=8, running=60, waiting=30, seed=1, case="mixed", policy="default"
    )
    found = planner.measure(options)
    assert found["gpus"] == 320
    assert found["placed"] + found["holds"] == 30
    assert {"cold_s", "warm_s", "peak_mb", "decisions"} <= set(found)


def test_a_few_hours_of_churn_move_nobody_within_its_cooling_time() -> None:
    found = thrash.measure(nodes=6, hours=3, seed=2)
    assert found["moves_within_cooling"] == 0
    assert found["useful_of_held"] >= 0.97


def test_the_safety_run_finds_nothing() -> None:
    for seed in range(500, 518):
        safety.one(seed)


ONCE_BROKEN = (
    702416, 1001459, 1013681, 1014758, 1020287, 1024982, 1035965, 1041164, 1041905, 1044818,
    1049141, 2003049, 2004022, 2005565, 2020151, 2020649, 2021108, 2032580, 2033783, 2046911,
    2049665, 4001302, 4003508, 70037138, 80000732, 80001284, 80020187, 80029712,
    1693, 123047, 123748, 123767, 124201, 124232, 700001924,
)  # fmt: skip
"""Fleets on which long runs once found a broken rule."""


def test_what_once_broke_a_rule_does_not_any_more() -> None:
    for seed in ONCE_BROKEN:
        safety.one(seed)
