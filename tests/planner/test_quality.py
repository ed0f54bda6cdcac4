"""On fleets small enough to solve exactly the planner is close to the optimum."""

from __future__ import annotations

from tests.benchmarks.quality import measure


def test_close_to_the_optimum() -> None:
    found = measure(seed=0, count=25)
    assert found["value_share"] >= 0.95
    assert found["fewest_share"] >= 0.95
