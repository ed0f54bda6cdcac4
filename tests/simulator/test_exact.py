"""Completion times that can be worked out by hand, on one counted pool without costs."""

import pytest

from scheduler.simulator.fleets import grid, pool
from scheduler.simulator.measures import measure
from tests.simulator.scenes import ends, play, scene

QUEUE = scene("0 10 2", "1 10 4", "2 5 2", "3 1 1")
"""On 4 devices: the second needs all, the others would fit beside the first."""


def test_strict_order_lets_nobody_pass():
    assert ends(play(QUEUE, pool(4), "pool-fifo")) == [10, 20, 25, 21]


def test_backfilling_starts_whoever_fits():
    assert ends(play(QUEUE, pool(4), "pool-fifo-backfill")) == [10, 20, 7, 8]


def test_shortest_first_reorders_those_who_wait():
    trace = scene("0 10 1", "1 9 1", "2 3 1", "3 6 1")
    assert ends(play(trace, pool(1), "pool-sjf")) == [10, 28, 13, 19]


def test_shortest_remaining_pushes_off_the_longer_and_loses_nothing():
    trace = scene("0 10 1", "4 3 1", "5 1 1")
    result = play(trace, pool(1), "pool-srtf")
    assert ends(result) == [14, 8, 6]
    assert measure(result)["moves"]["preemptions"] == 2
    assert sum(each.lost_s for each in result.outcomes) == 0


def test_remaining_service_counts_time_by_devices():
    trace = scene("0 10 4", "1 11 1")
    assert ends(play(trace, pool(4), "pool-srtf")) == [10, 21]
    assert ends(play(trace, pool(4), "pool-srsf")) == [21, 12]


def test_ties_go_by_submission_then_row():
    assert ends(play(scene("0 5 1", "0 5 1", "0 5 1"), pool(1), "pool-sjf")) == [5, 10, 15]


def test_a_job_of_no_length_ends_when_it_starts():
    assert ends(play(scene("0 5 1", "1 0 1", "2 1 1"), pool(1), "pool-fifo")) == [5, 5, 6]


def test_who_can_never_fit_is_given_up_and_told():
    result = play(scene("0 5 8", "1 5 1"), pool(4), "pool-fifo-backfill")
    assert ends(result) == [None, 6]
    assert measure(result)["finished"] == 1


@pytest.mark.parametrize("policy", ["fifo", "fifo-backfill", "sjf", "srtf", "srsf"])
def test_one_large_node_is_as_good_as_a_pool(policy: str):
    lines = [f"{3 * n % 17 + n} {5 + 7 * n % 23} {1 + n % 4}" for n in range(40)]
    assert ends(play(scene(*lines), grid(1, 4), policy)) == ends(
        play(scene(*lines), pool(4), f"pool-{policy}")
    )


def test_measures_of_a_small_case_by_hand():
    measures = measure(play(scene("0 10 2", "0 10 4"), pool(4), "pool-fifo"))
    assert measures["makespan_s"] == 20
    assert measures["completion_s"]["mean"] == 15
    assert measures["wait_s"]["max"] == 10
    assert measures["allocation"] == pytest.approx(60 / 80)
    assert measures["utilisation"] == pytest.approx(60 / 80)
    assert measures["blocked"] == pytest.approx(20 / 80)
    assert measures["by_size"]["3-4"]["jobs"] == 1
