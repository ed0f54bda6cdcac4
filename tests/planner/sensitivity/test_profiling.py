"""Optimistic profiling: few measurements, and the memory axis told from the cache."""

import pytest

from scheduler.planner.sensitivity import Point, next_amount, predict

GB = 10**9


def test_only_where_the_pace_changes_is_measured():
    amounts = [1, 2, 3, 4, 6, 9, 12, 24]
    truth = {1: 0.3, 2: 0.66, 3: 1.0, 4: 1.25, 6: 1.75, 9: 1.75, 12: 1.75, 24: 1.75}
    measured: dict[float, float] = {}
    while (amount := next_amount(measured, amounts)) is not None:
        measured[amount] = truth[amount]
    assert list(measured)[:2] == [24, 1]
    assert {2, 3, 4} <= set(measured)
    assert 12 not in measured
    assert next_amount({}, [4]) == 4


def test_a_job_that_does_not_care_is_measured_twice():
    measured: dict[float, float] = {}
    while (amount := next_amount(measured, [1, 2, 3, 6, 12])) is not None:
        measured[amount] = 1.0
    assert sorted(measured) == [1, 12]


def test_less_memory_than_the_data_set_means_reading_from_storage():
    matrix = predict(
        {3: 1.0, 6: 1.8},
        memory=[10 * GB, 60 * GB, 110 * GB],
        working_memory=10 * GB,
        dataset=100 * GB,
        epoch_s=100,
        storage=0.5 * GB,
    )
    assert matrix.pace(Point(6, 110 * GB)) == 1.8
    assert matrix.pace(Point(6, 60 * GB)) == pytest.approx(1.0)
    assert matrix.pace(Point(6, 10 * GB)) == pytest.approx(0.5)
    assert matrix.pace(Point(6, 9 * GB)) == 0
    with pytest.raises(ValueError, match="measured"):
        predict({}, memory=[1], working_memory=0, dataset=1, epoch_s=1, storage=1)
