"""The arithmetic of the measures."""

import pytest

from scheduler.simulator.fleets import pool
from scheduler.simulator.lives import Outcome
from scheduler.simulator.measures import jain, measure, percentile, size_of, spread
from scheduler.simulator.records import curve
from tests.simulator.scenes import play, scene


def outcome(**known: object) -> Outcome:
    base: dict[str, object] = {
        "id": "a", "tenant": "t", "tier": "premium", "gpus": 1, "submitted_at": 0.0,
        "duration_s": 90.0, "started_at": 5.0, "finished_at": 100.0, "delivered": 90.0,
        "moving_s": 4.0, "lost_s": 0.0, "preemptions": 0, "migrations": 0, "resizes": 0,
        "contention": 2.0,
    }  # fmt: skip
    return Outcome(**{**base, **known})  # type: ignore[arg-type]


def test_percentiles_lie_between_neighbours():
    assert percentile([0, 10], 0.5) == 5
    assert percentile([1, 2, 3, 4, 5], 0.5) == 3
    assert spread([]) == {}
    assert spread([4.0])["p99"] == 4


def test_jain_is_one_for_equals_and_a_part_for_one_who_has_it_all():
    assert jain([3, 3, 3]) == 1
    assert jain([1, 0, 0, 0]) == 0.25


def test_an_outcome_knows_its_wait_its_fraction_and_its_fairness():
    one = outcome()
    assert (one.completion_s, one.wait_s, one.fraction) == (100, 6, 0.9)
    assert one.unfairness == pytest.approx(100 / 180)
    with pytest.raises(ValueError, match="did not finish"):
        _ = outcome(finished_at=None).completion_s


def test_sizes_have_classes():
    assert [size_of(outcome(gpus=gpus)) for gpus in (1, 3, 8, 12, 64, 65)] == [
        "1", "3-4", "5-8", "9-16", "17-64", "65 and more",
    ]  # fmt: skip


def test_promises_count_jobs_at_or_above_their_fraction():
    trace = scene("0 90 1", "0 90 1", tier="premium")
    kept = measure(play(trace, pool(1), "pool-fifo"))["promises"]["premium"]
    assert (kept["jobs"], kept["kept"], kept["share"]) == (2, 1, 0.5)


def test_a_curve_is_a_distribution_of_fixed_length():
    assert curve([]) == []
    drawn = curve(range(1000))
    assert (len(drawn), drawn[0], drawn[-1]) == (200, 0, 999)


def test_reasons_are_counted_when_asked_for():
    trace = scene("0 90 1", "0 90 1")
    assert measure(play(trace, pool(1), "pool-fifo"))["holds"] == {}
    assert measure(play(trace, pool(1), "pool-fifo", reasons=True))["holds"] == {"busy": 1}
