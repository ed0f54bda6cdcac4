"""Nodes that fail, nodes that are switched off with notice, and what their jobs lose."""

from dataclasses import replace

from scheduler.planner import Remedy
from scheduler.simulator.fleets import Absence, FailureLaw, Outage, grid
from scheduler.simulator.measures import measure
from scheduler.simulator.physics import Costs
from tests.simulator.scenes import ends, play, scene

LOST = Outage(at=100, until=150, node="n0000")


def test_a_lost_job_goes_back_to_its_last_checkpoint():
    fleet = replace(grid(1, 1), outages=(LOST,))
    costs = replace(Costs.off(), checkpoint_every_s=40)
    result = play(scene("0 200 1"), fleet, "fifo-backfill", costs=costs)
    assert ends(result) == [150 + 200 - 80]
    assert result.outcomes[0].lost_s == 20


def test_a_job_without_checkpoints_starts_again():
    fleet = replace(grid(1, 1), outages=(LOST,))
    costs = replace(Costs.off(), checkpoint_every_s=40)
    trace = scene("0 200 1", remedy=Remedy.REQUEUE)
    result = play(trace, fleet, "fifo-backfill", costs=costs)
    assert ends(result) == [350]
    assert result.outcomes[0].lost_s == 100


def test_nothing_lands_on_a_lost_node_and_its_devices_do_not_count():
    fleet = replace(grid(2, 1), outages=(LOST,))
    result = play(scene("0 90 1", "120 10 1", "120 20 1"), fleet, "fifo-backfill")
    assert ends(result) == [90, 130, 150]
    assert result.chronicle.capacity == 2 * 100 + 1 * 50


def test_a_draining_node_is_left_in_time():
    outages = (
        Outage(at=50, until=400, node="n0000", absence=Absence.DRAINING),
        Outage(at=100, until=400, node="n0000"),
    )
    fleet = replace(grid(2, 1), outages=outages)
    result = play(scene("0 200 1"), fleet, "default", switches={"minimum_run_s": "0"})
    assert result.outcomes[0].lost_s == 0
    assert result.outcomes[0].migrations == 1
    assert ends(result) == [200]


def test_failures_come_from_the_seed():
    fleet = replace(grid(4, 2), failures=FailureLaw(mean_between_s=500, mean_repair_s=50))
    lines = [f"{10 * n} 100 {1 + n % 2}" for n in range(60)]
    one, same, other = (
        play(scene(*lines), fleet, "fifo-backfill", seed=seed) for seed in (1, 1, 2)
    )
    assert ends(one) == ends(same)
    assert ends(one) != ends(other)
    assert measure(one)["finished"] == 60
    assert sum(each.lost_s for each in one.outcomes) > 0


def test_waiting_for_a_node_that_never_comes_back_ends():
    fleet = replace(grid(1, 1), failures=FailureLaw(mean_between_s=10, mean_repair_s=10))
    result = play(scene("0 5 1", "0 5 8"), fleet, "fifo-backfill")
    assert ends(result)[1] is None
