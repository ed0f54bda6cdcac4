"""The same replicas on fewer or more devices."""

from __future__ import annotations

from dataclasses import replace

from scheduler.planner import PRESETS, Hold, Phase, Quota, Resize, Tenant, plan
from scheduler.planner.needs import sizes
from scheduler.planner.paper import enacted, gone
from tests.planner.sketches import NOW, given, job, node, told

POLICY = PRESETS["default"]


def answers(nodes, jobs, policy=POLICY, **fields) -> dict[str, str]:
    return told(plan(given(nodes, jobs, **fields), policy))


def test_legal_sizes_divide_the_replicas_evenly() -> None:
    assert [size.devices for size in sizes(job("a", 8, fewest_devices=2))] == [8, 4, 2]
    assert [size.devices for size in sizes(job("a", 6, fewest_devices=1))] == [6, 3, 2, 1]
    assert [size.devices for size in sizes(job("a", 8, each=2, fewest_devices=3))] == [8, 4]
    assert [size.devices for size in sizes(job("a", 8))] == [8]


def test_it_starts_small_where_more_is_not_free() -> None:
    found = answers([node("n1")], [job("x", 3, on="n1"), job("a", 8, fewest_devices=1)])
    assert found["a"] == "place n1*4 started_small"


def test_replicas_that_share_a_device_name_the_same_one() -> None:
    decided = plan(given([node("n1", 2)], [job("a", 4, fewest_devices=2)]), POLICY)
    seats = decided[0].seats
    assert [seat.rank for seat in seats] == [0, 1, 2, 3]
    assert seats[0].devices == seats[1].devices != seats[2].devices == seats[3].devices


def test_it_gives_devices_before_anyone_is_pushed_off() -> None:
    jobs = [
        job("elastic", 4, on="n1", fewest_devices=2),
        job("rigid", 2, on="n1"),
        job("high", 2, tier="premium"),
    ]
    found = answers([node("n1", 6)], jobs)
    assert found == {"elastic": "resize n1*2 gave_devices", "high": "place n1*2 made_room"}


def test_it_gives_to_its_equals_too_but_not_below_its_bound() -> None:
    jobs = [job("elastic", 8, on="n1", fewest_devices=4), job("b", 4), job("c", 4)]
    found = answers([node("n1")], jobs)
    assert found["elastic"] == "resize n1*4 gave_devices"
    assert found["b"] == "place n1*4 made_room"
    assert found["c"] == "hold busy"


def test_it_gives_whole_nodes_to_a_gang() -> None:
    jobs = [
        job("elastic", 16, on="n1*8 n2*8", fewest_devices=4),
        job("gang", 8, each=8, tier="standard"),
    ]
    found = answers([node("n1"), node("n2")], jobs)
    assert found["gang"] in ("place n1*8 made_room", "place n2*8 made_room")
    assert found["elastic"].startswith("resize")


def small(**fields):
    """A job of four replicas that runs on two devices of n1."""
    whole = given([node("n1", 4)], [job("a", 4, on="n1", fewest_devices=1, **fields)]).jobs[0]
    halves = tuple(
        replace(seat, devices=(whole.seats[seat.rank // 2].devices)) for seat in whole.seats
    )
    return replace(whole, seats=halves)


def test_it_grows_into_idle_devices_by_itself() -> None:
    assert answers([node("n1", 4)], [small()]) == {"a": "resize n1*4 grew"}


def test_it_does_not_grow_while_someone_waits_for_such_devices() -> None:
    found = answers([node("n1", 4)], [small(), job("b", 3)])
    assert found.get("a", "").startswith("resize n1*1")
    found = answers([node("n1", 4)], [small(last_moved_at=NOW - 10.0), job("b", 3)])
    assert found == {"b": "hold busy"}


def test_it_grows_no_further_than_its_quota() -> None:
    tight = (Tenant(id="team", quotas={"a100": Quota(reserved=3)}),)
    assert answers([node("n1", 4)], [small()], tenants=tight) == {}


def test_it_does_not_grow_for_the_last_seconds() -> None:
    ending = small(expected_s=1000.0, worked_s=990.0)
    assert answers([node("n1", 4)], [ending]) == {}


def test_a_person_sets_the_size() -> None:
    whole = job("a", 4, on="n1", fewest_devices=1, asked_devices=2)
    found = answers([node("n1", 4)], [whole])
    assert found == {"a": "resize n1*2 asked"}
    assert answers([node("n1", 4)], [small(asked_devices=2)]) == {}
    assert answers([node("n1", 4)], [small(asked_devices=4)]) == {"a": "resize n1*4 asked"}
    stuck = job("a", 4, on="n1", fewest_devices=1, asked_devices=2, move_asked=True)
    assert answers([node("n1", 4)], [stuck]) == found, "a move without room is not waited for"
    waiting = job("a", 4, fewest_devices=1, asked_devices=2)
    assert answers([node("n1", 4)], [waiting])["a"] == "place n1*2 started_small"


def test_it_does_not_oscillate() -> None:
    """Shrunk for a guest it grows when the guest has left, once, and then all is quiet."""
    snapshot = given([node("n1")], [job("host", 8, on="n1", fewest_devices=2), job("guest", 4)])
    first = plan(snapshot, POLICY)
    assert sum(isinstance(decision, Resize) for decision in first) == 1
    snapshot = enacted(snapshot, first)
    for _ in range(3):
        assert plan(snapshot, POLICY) == ()
        snapshot = replace(snapshot, now=snapshot.now + 1000.0)
    snapshot = gone(snapshot, ["guest"])
    again = plan(snapshot, POLICY)
    assert told(again) == {"host": "resize n1*8 grew"}
    snapshot = enacted(snapshot, again)
    assert plan(replace(snapshot, now=snapshot.now + 5000.0), POLICY) == ()


def test_a_moving_job_is_not_touched() -> None:
    moving = replace(small(), phase=Phase.MOVING)
    assert answers([node("n1", 4)], [moving]) == {}
    decided = plan(given([node("n1", 4)], [moving, job("high", 4, tier="premium")]), POLICY)
    assert [type(decision) for decision in decided] == [Hold]
