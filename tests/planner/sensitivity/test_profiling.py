"""Optimistic profiling: the memory axis is told from the cache."""

import pytest

from scheduler.planner.sensitivity import Point, predict

GB = 10**9


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
