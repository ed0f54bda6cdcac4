"""The planner's invariants hold after each cycle of whole simulated lives."""

from dataclasses import replace

import pytest

from scheduler.simulator.fleets import FailureLaw, grid
from scheduler.simulator.measures import measure
from scheduler.simulator.physics import Costs
from scheduler.simulator.synthetic import Recipe, dressed, synthetic
from tests.simulator.scenes import play

TIERS = {"premium": 0.3, "standard": 0.3, "basic": 0.4}


@pytest.mark.parametrize("policy", ["default", "eager", "srtf", "fair", "fifo-easy"])
def test_no_plan_breaks_a_rule(policy: str):
    recipe = Recipe(pattern="bursty", jobs=60, load=1.1, devices=16, burst=8)
    trace = dressed(synthetic(recipe, seed=5), seed=5, tiers=TIERS, elastic=0.6, noise=0.5)
    fleet = replace(
        grid(4, 4, rack_size=2), failures=FailureLaw(mean_between_s=40_000, mean_repair_s=2_000)
    )
    result = play(trace, fleet, policy, costs=Costs(), audit=True, seed=3)
    possible = sum((each.fewest_gpus or each.gpus) <= 16 for each in trace.arrivals)
    assert measure(result)["finished"] == possible


def test_nothing_is_delivered_twice_and_no_work_is_missing():
    trace = dressed(synthetic(Recipe(jobs=120, devices=16), seed=2), seed=2, tiers=TIERS)
    result = play(trace, grid(2, 8), "default", costs=Costs())
    for each in result.outcomes:
        if each.finished_at is not None:
            work = each.gpus * (each.duration_s + each.lost_s)
            assert each.delivered == pytest.approx(work)
            assert each.completion_s >= each.duration_s - 1e-6
