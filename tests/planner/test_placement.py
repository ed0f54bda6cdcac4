"""Where jobs go: tight places, together, on devices that suit."""

from __future__ import annotations

import pytest

from scheduler.planner import PRESETS, Job, Node, Reason, Remedy, Seat, plan
from tests.planner.sketches import given, job, node, told

POLICY = PRESETS["default"]


def answers(nodes: list[Node], jobs: list[Job], policy=POLICY, **fields) -> dict[str, str]:
    return told(plan(given(nodes, jobs, **fields), policy))


def test_a_small_job_goes_where_the_least_is_left_over() -> None:
    found = answers([node("n1"), node("n2")], [job("a", 5, on="n2"), job("b", 3)])
    assert found == {"b": "place n2*3 fits"}


def test_a_gang_is_all_or_nothing() -> None:
    nodes = [node("n1", 4), node("n2", 4)]
    three = [*nodes, node("n3", 2)]
    busy = [job(f"x{index}", on=f"n{index}", remedy=Remedy.REQUEUE) for index in (1, 2)]
    assert answers(three, [*busy, job("a", 8, each=4)])["a"] == "hold fragmented"
    assert answers(nodes, [job("a", 8, each=4)])["a"] == "place n1*4+n2*4 fits"


def test_a_gang_stays_on_one_node_then_in_one_rack_then_in_one_cluster() -> None:
    far = [
        node("a1", 4, rack="r1", cluster="c1"),
        node("a2", 4, rack="r2", cluster="c1"),
        node("b1", 4, rack="r3", cluster="c2"),
        node("b2", 4, rack="r3", cluster="c2"),
        node("c1", 8, rack="r4", cluster="c3"),
    ]
    assert answers(far, [job("g", 8)])["g"] == "place c1*8 fits"
    assert answers(far[:4], [job("g", 8)])["g"] == "place b1*4+b2*4 fits"
    assert answers(far[:2], [job("g", 8)])["g"] == "place a1*4+a2*4 fits"
    assert answers(far[1:3], [job("g", 8)])["g"] == "place a2*4+b1*4 fits"


def test_a_gang_never_spans_regions() -> None:
    nodes = [node("e1", 4, region="east"), node("w1", 4, region="west")]
    assert answers(nodes, [job("g", 8)])["g"] == "hold too_large"
    three = [*nodes, node("e2", 4, region="east"), node("w2", 4, region="west")]
    busy = [job(f"x{where}", on=where, remedy=Remedy.REQUEUE) for where in ("e1", "w1")]
    assert answers(three, [*busy, job("g", 8)])["g"] == "hold topology"


def test_a_gang_of_several_nodes_needs_nodes_that_can_join() -> None:
    apart = [node("n1", 4, can_run_together=False), node("n2", 4, can_run_together=False)]
    assert answers(apart, [job("g", 8)])["g"] == "hold no_joining_nodes"
    assert answers(apart, [job("g", 4)])["g"] == "place n1*4 fits"


def test_the_last_part_of_a_gang_fills_a_hole() -> None:
    nodes = [node("n1"), node("n2"), node("n3")]
    found = answers(nodes, [job("x", 6, on="n2"), job("g", 10)])
    assert found["g"] == "place n1*8+n2*2 fits"


def test_kind_memory_and_partition_are_respected() -> None:
    nodes = [
        node("n1", kind="a100", device_memory=40),
        node("n2", kind="h100", device_memory=80, partitions=frozenset({"blue"})),
    ]
    jobs = [
        job("kind", device_kind="h100"),
        job("memory", device_memory=60),
        job("partition", partition="blue"),
        job("none", device_kind="b200"),
        job("big", device_memory=100),
        job("red", partition="red"),
    ]
    found = answers(nodes, jobs)
    assert {id_: found[id_] for id_ in ("kind", "memory", "partition")} == {
        "kind": "place n2*1 fits",
        "memory": "place n2*1 fits",
        "partition": "place n2*1 fits",
    }
    assert found["none"] == "hold no_such_kind"
    assert found["big"] == "hold device_memory"
    assert found["red"] == "hold no_such_partition"


def test_a_job_without_a_kind_gets_devices_of_one_kind() -> None:
    nodes = [node("n1", 4, kind="a100"), node("n2", 4, kind="h100"), node("n3", 4, kind="h100")]
    assert answers(nodes, [job("g", 8)])["g"] == "place n2*4+n3*4 fits"


def test_cpus_and_host_memory_count() -> None:
    nodes = [node("n1", 8, cpus=16, memory=64)]
    jobs = [
        job("a", 4, cpus_per_replica=3.5, memory_per_replica=4),
        job("b", 1, cpus_per_replica=3),
    ]
    assert answers(nodes, jobs) == {"a": "place n1*4 fits", "b": "hold host_busy"}
    assert answers(nodes, [job("c", 1, memory_per_replica=65)])["c"] == "hold host_size"
    gang = [node("n1", 8, cpus=8), node("n2", 8, cpus=8)]
    assert answers(gang, [job("g", 8, cpus_per_replica=2)])["g"] == "place n1*4+n2*4 fits"


@pytest.mark.parametrize("flag", ["cordoned", "draining", "lost"])
def test_nothing_lands_on_a_node_that_is_away(flag: str) -> None:
    nodes = [node("n1", **{flag: True})]
    assert answers(nodes, [job("a", 2)]) == {"a": "hold nodes_away"}


def test_sick_devices_are_left_out() -> None:
    found = answers([node("n1", 4, sick=1)], [job("a", 3), job("b", 1)])
    assert found == {"a": "place n1*3 fits", "b": "hold busy"}


def test_a_checkpoint_is_restored_where_that_can_be_done() -> None:
    nodes = [node("n1", can_restore=False), node("n2", 2)]
    assert answers(nodes, [job("a", 2, has_image=True)])["a"] == "place n2*2 restored"
    assert answers(nodes[:1], [job("a", 2, has_image=True)])["a"] == "hold no_restoring_node"
    requeued = job("a", 2, has_image=True, remedy=Remedy.REQUEUE)
    assert answers(nodes[:1], [requeued])["a"] == "place n1*2 restored"


def test_a_paused_job_comes_back_to_its_nodes_only() -> None:
    kept = (Seat(rank=0, node="n1", devices=("n1/0",)), Seat(rank=1, node="n1", devices=("n1/1",)))
    paused = job("p", 2, remedy=Remedy.PAUSE, kept_on=kept)
    nodes = [node("n1", 4), node("n2", 8)]
    assert answers(nodes, [job("x", 2, on="n1"), paused])["p"] == "place n1*2 restored"
    assert answers(nodes, [job("x", 3, on="n1"), paused])["p"] == "hold kept_node_busy"
    assert answers(nodes[1:], [paused])["p"] == "hold kept_node_gone"


def test_nodes_to_avoid_are_avoided() -> None:
    nodes = [node("n1"), node("n2")]
    shy = job("a", 1, avoid_nodes=frozenset({"n1"}))
    assert answers(nodes, [job("x", 4, on="n1"), shy])["a"] == "place n2*1 fits"
    lost = job("a", 1, avoid_nodes=frozenset({"n1", "n2"}))
    assert answers(nodes, [lost])["a"] == "hold avoids_all"


def test_wanted_nodes_are_preferred_but_not_waited_for() -> None:
    nodes = [node("n1", 4), node("n2", 4)]
    fond = job("a", 2, wanted_nodes=frozenset({"n2"}))
    assert answers(nodes, [job("x", 2, on="n1"), fond])["a"] == "place n2*2 fits"
    assert answers(nodes, [job("x", 4, on="n2"), fond])["a"] == "place n1*2 fits"


def test_mixed_nodes_hold_several_kinds() -> None:
    from dataclasses import replace

    mixed = replace(
        node("n1", 2, kind="h100"),
        devices=node("n1", 2, kind="h100").devices
        + tuple(replace(one, id=f"{one.id}c", kind="cpu") for one in node("n1", 4).devices),
        cpus=8,
    )
    jobs = [job("a", 2, device_kind="h100", cpus_per_replica=2), job("b", 2, device_kind="cpu")]
    assert answers([mixed], jobs) == {"a": "place n1*2 fits", "b": "place n1*2 fits"}
    jobs = [job("a", 2, device_kind="h100", cpus_per_replica=4)]
    jobs += [job("b", 1, device_kind="cpu", cpus_per_replica=1, submitted_at=999_999.0)]
    assert answers([mixed], jobs) == {"a": "place n1*2 fits", "b": "hold host_busy"}


def test_who_came_first_goes_first() -> None:
    jobs = [job("late", 4, submitted_at=999_900.0), job("early", 4, submitted_at=999_000.0)]
    found = answers([node("n1", 4)], jobs)
    assert found == {"early": "place n1*4 fits", "late": "hold busy"}


def test_strict_order_lets_nobody_pass() -> None:
    nodes = [node("n1", 8)]
    jobs = [
        job("x", 4, on="n1"),
        job("big", 8, submitted_at=999_000.0),
        job("small", 1, submitted_at=999_500.0),
    ]
    assert answers(nodes, jobs, PRESETS["fifo"]) == {"big": "hold busy", "small": "hold behind"}
    assert answers(nodes, jobs, PRESETS["fifo-backfill"])["small"] == "place n1*1 fits"


def test_backfill_does_not_delay_the_first_that_waits() -> None:
    nodes = [node("n1", 8)]
    runs = job("x", 4, on="n1", expected_s=1000.0, worked_s=400.0)
    big = job("big", 8, submitted_at=990_000.0)
    short = job("short", 2, expected_s=500.0, submitted_at=999_000.0)
    long = job("long", 2, expected_s=5000.0, submitted_at=999_000.0)
    found = answers(nodes, [runs, big, short, long], PRESETS["fifo-easy"])
    assert found["short"] == "place n1*2 fits"
    assert found["long"] == "hold reserved"


def test_who_waits_too_long_gets_a_reservation() -> None:
    nodes = [node("n1", 8)]
    old = job("big", 8, tier="standard", submitted_at=900_000.0)
    jobs = [job("x", 4, on="n1", tier="premium"), old, job("small", 1, tier="standard")]
    assert answers(nodes, jobs)["small"] == f"hold {Reason.RESERVED}"
    # What can be pushed off again may go in between.
    lesser = [*jobs[:2], job("small", 1, tier="basic")]
    assert answers(nodes, lesser)["small"] == "place n1*1 fits"


def test_nothing_is_reserved_for_one_that_few_nodes_suit() -> None:
    nodes = [node("n1", 8, partitions=frozenset({"blue"})), node("n2", 8)]
    picky = job("big", 8, tier="standard", partition="blue", submitted_at=900_000.0)
    jobs = [job("x", 4, on="n1", tier="premium"), picky, job("small", 8, tier="standard")]
    assert answers(nodes, jobs)["small"] == "place n2*8 fits"
