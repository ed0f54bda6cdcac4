"""What is kept for those who have waited long, and what those behind them are told."""

from __future__ import annotations

from scheduler.planner import PRESETS, Job, Node, Reason, plan
from tests.planner.sketches import given, job, node, told

LONG_AGO = 900_000.0
BLUE = frozenset({"blue"})


def answers(nodes: list[Node], jobs: list[Job]) -> dict[str, str]:
    return told(plan(given(nodes, jobs), PRESETS["default"]))


def test_a_small_partition_is_kept_for_the_gang_that_waits_for_it() -> None:
    nodes = [node("n1", 4, partitions=BLUE), node("n2", 4, partitions=BLUE), node("n3", 4)]
    gang = job("gang", 8, tier="standard", partition="blue", submitted_at=LONG_AGO)
    full = job("x", 4, on="n1", tier="premium"), job("y", 4, on="n3", tier="premium")
    small = job("small", 1, tier="standard")
    assert answers(nodes, [*full, gang, small])["small"] == f"hold {Reason.RESERVED}"
    # The rest of the fleet is open to all, and what can be pushed off may go in between.
    assert answers(nodes, [full[0], gang, small])["small"] == "place n3*1 fits"
    lesser = job("small", 1, tier="basic")
    assert answers(nodes, [*full, gang, lesser])["small"] == "place n2*1 fits"


def test_who_is_done_in_time_passes() -> None:
    nodes = [node("n1", 4, partitions=BLUE), node("n2", 4, partitions=BLUE)]
    gang = job("gang", 8, tier="standard", partition="blue", submitted_at=LONG_AGO)
    running = job("x", 4, on="n1", tier="premium", expected_s=90_000.0)
    short = job("short", 1, tier="standard", expected_s=60.0)
    assert answers(nodes, [running, gang, short])["short"] == "place n2*1 fits"
    long = job("long", 1, tier="standard", expected_s=200_000.0)
    assert answers(nodes, [running, gang, long])["long"] == f"hold {Reason.RESERVED}"


def test_nothing_is_said_to_be_kept_from_one_who_came_first() -> None:
    """A reservation made for someone behind it stands in nobody's way."""
    nodes = [node("n1", 8)]
    jobs = [
        job("x", 6, on="n1", tier="premium"),
        job("ahead", 4, tier="premium"),
        job("old", 8, tier="basic", submitted_at=LONG_AGO),
    ]
    assert answers(nodes, jobs)["ahead"] == f"hold {Reason.BUSY}"


def test_nothing_is_said_to_be_kept_where_nothing_is_free() -> None:
    jobs = [
        job("x", 8, on="n1", tier="premium"),
        job("old", 8, tier="standard", submitted_at=LONG_AGO),
        job("small", 1, tier="standard"),
    ]
    assert answers([node("n1", 8)], jobs)["small"] == f"hold {Reason.BUSY}"
