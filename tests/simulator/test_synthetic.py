"""Made-up traces have the load, the sizes and the rhythm that were asked for."""

import itertools
import statistics

import pytest

from scheduler.simulator.synthetic import PATTERNS, Recipe, dressed, recipe_named, synthetic
from tests.simulator.scenes import scene


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_load_is_what_was_asked_for(pattern: str):
    trace = synthetic(Recipe(pattern=pattern, jobs=3000, load=0.8, devices=64), seed=3)
    assert trace.device_seconds / trace.span_s / 64 == pytest.approx(0.8, rel=0.25)
    assert trace == synthetic(Recipe(pattern=pattern, jobs=3000, load=0.8, devices=64), seed=3)
    assert trace != synthetic(Recipe(pattern=pattern, jobs=3000, load=0.8, devices=64), seed=4)


def test_bursts_are_more_uneven_than_poisson():
    def unevenness(pattern: str) -> float:
        trace = synthetic(Recipe(pattern=pattern, jobs=2000), seed=1)
        moments = [each.submitted_at for each in trace.arrivals]
        gaps = [later - sooner for sooner, later in itertools.pairwise(moments)]
        return statistics.stdev(gaps) / statistics.mean(gaps)

    assert unevenness("bursty") > 2 * unevenness("poisson")


def test_sizes_and_durations_are_drawn_together_from_a_trace():
    model = scene("0 10 1", "0 1000 8")
    trace = synthetic(Recipe(jobs=200), seed=1, like=model)
    assert {(each.gpus, each.duration_s) for each in trace.arrivals} == {(1, 10), (8, 1000)}


def test_a_recipe_is_written_in_one_word():
    recipe = recipe_named("bursty,jobs=50,load=1.5,burst=5")
    assert recipe == Recipe(pattern="bursty", jobs=50, load=1.5, burst=5)


def test_dressing_adds_tiers_bounds_and_misjudged_durations():
    trace = scene(*(f"{n} 100 {1 + n % 8}" for n in range(400)))
    full = dressed(trace, seed=1, tiers={"premium": 0.25, "basic": 0.75}, elastic=0.5, noise=0.8)
    premium = sum(each.tier == "premium" for each in full.arrivals)
    assert 60 < premium < 140
    assert all(each.fewest_gpus is None for each in full.arrivals if each.gpus == 1)
    assert any(each.fewest_gpus == 2 for each in full.arrivals if each.gpus == 8)
    assert len({each.expected_s for each in full.arrivals}) == 400
    assert [each.duration_s for each in full.arrivals] == [100] * 400
