"""Moves: out of the way, off nodes that drain, where people ask, to tidy up."""

from __future__ import annotations

from dataclasses import replace

from scheduler.planner import PRESETS, MoveCost, Remedy, Tenant, plan
from scheduler.planner.paper import enacted
from tests.planner.sketches import NOW, given, job, node, told

POLICY = PRESETS["default"]


def answers(nodes, jobs, policy=POLICY, **fields) -> dict[str, str]:
    return told(plan(given(nodes, jobs, **fields), policy))


def scattered(**fields):
    """Two nodes with two devices in use each, by jobs that can move."""
    return [job("a", 2, on="n1", **fields), job("b", 2, on="n2", **fields)]


FOUR = [node("n1", 4), node("n2", 4)]


def test_one_moves_aside_so_that_a_gang_finds_its_devices_together() -> None:
    found = answers(FOUR, [*scattered(), job("g", 4, each=4)])
    assert found == {"b": "migrate n1*2 gap", "g": "place n2*4 made_room"} or found == {
        "a": "migrate n2*2 gap",
        "g": "place n1*4 made_room",
    }


def test_a_gap_for_several_nodes() -> None:
    nodes = [node(f"n{index}", 4) for index in range(4)]
    jobs = [job(f"j{index}", 1, on=f"n{index}") for index in range(4)]
    found = answers(nodes, [*jobs, job("g", 12, each=4)])
    assert found["g"].startswith("place")
    assert sum(what.startswith("migrate") for what in found.values()) == 3


def test_who_cannot_move_or_just_moved_stays() -> None:
    waiting = job("g", 4, each=4)
    for fields in ({"remedy": Remedy.REQUEUE}, {"last_moved_at": NOW - 60.0}):
        assert answers(FOUR, [*scattered(**fields), waiting]) == {"g": "hold fragmented"}
    fixed = [replace(one, can_restore=False) for one in FOUR]
    assert answers(fixed, [*scattered(), waiting]) == {"g": "hold fragmented"}


def test_no_move_for_less_than_it_costs() -> None:
    dear = MoveCost(checkpoint_s=8000.0, transfer_s=0.0, restore_s=0.0, samples=3)
    found = answers(FOUR, [*scattered(cost=dear), job("g", 4, each=4)])
    assert found == {"g": "hold fragmented"}
    short = job("g", 4, each=4, expected_s=5.0)
    assert answers(FOUR, [*scattered(), short]) == {"g": "hold fragmented"}


def test_the_budget_of_moves() -> None:
    spent = tuple(NOW - index for index in range(POLICY.moves_per_hour))
    found = answers(FOUR, [*scattered(), job("g", 4, each=4)], moved_at=spent)
    assert found == {"g": "hold move_budget"}


def test_a_lower_tier_does_not_move_a_higher_one() -> None:
    found = answers(FOUR, [*scattered(tier="premium"), job("g", 4, each=4)])
    assert found == {"g": "hold fragmented"}


def test_a_draining_node_is_emptied_by_moves() -> None:
    nodes = [node("n1", 4, draining=True), node("n2", 4)]
    found = answers(nodes, [job("a", 2, on="n1"), job("b", 2, on="n1", last_moved_at=NOW)])
    assert found == {"a": "migrate n2*2 drained", "b": "migrate n2*2 drained"}


def test_without_another_place_it_goes_on_smaller_or_is_queued() -> None:
    nodes = [node("n1", 4, draining=True), node("n2", 2)]
    elastic = job("a", 4, on="n1", fewest_devices=1)
    assert answers(nodes, [elastic]) == {"a": "resize n2*2 drained"}
    assert answers(nodes, [job("a", 4, on="n1")]) == {"a": "preempt drained"}
    stays = job("a", 4, on="n1", remedy=Remedy.REQUEUE)
    assert answers(nodes, [stays]) == {}


def test_a_sick_device_is_left() -> None:
    ill = node("n1", 4, sick=1)
    runs = given([node("n1", 4), node("n2", 4)], [job("a", 2, on="n1")]).jobs[0]
    found = told(plan(given([ill, node("n2", 4)], [runs]), POLICY))
    assert found["a"].startswith("migrate") and found["a"].endswith("sick_device")


def test_a_lost_node_gives_its_jobs_back_to_the_queue() -> None:
    nodes = [node("n1", 4, lost=True), node("n2", 4)]
    assert answers(nodes, [job("a", 2, on="n1")]) == {"a": "preempt node_lost"}


def test_a_person_moves_a_job_anywhere_else_or_to_named_nodes() -> None:
    nodes = [node("n1", 4), node("n2", 4), node("n3", 4)]
    anywhere = job("a", 2, on="n1", move_asked=True, last_moved_at=NOW)
    assert answers(nodes, [anywhere]) == {"a": "migrate n2*2 asked"}
    there = job("a", 2, on="n1", move_asked=True, wanted_nodes=frozenset({"n3"}))
    assert answers(nodes, [there]) == {"a": "migrate n3*2 asked"}
    done = job("a", 2, on="n1", move_asked=True, wanted_nodes=frozenset({"n1"}))
    assert answers(nodes, [done]) == {}
    full = [there, job("x", 3, on="n3", remedy=Remedy.REQUEUE)]
    assert "a" not in answers(nodes, full)


def test_hardly_used_nodes_are_emptied_when_few_whole_ones_are_left() -> None:
    nodes = [node(f"n{index}") for index in range(3)]
    jobs = [job("a", 5, on="n0"), job("b", 2, on="n1"), job("c", 5, on="n2")]
    found = answers(nodes, jobs)
    assert found == {"b": "migrate n0*2 defragmented"}
    snapshot = given(nodes, jobs)
    after = enacted(snapshot, plan(snapshot, POLICY))
    assert plan(replace(after, now=after.now + 5000.0), POLICY) == ()
    off = replace(POLICY, defragmentation=False)
    assert answers(nodes, jobs, off) == {}


def test_the_one_who_comes_waits_for_those_who_go() -> None:
    decided = plan(given(FOUR, [*scattered(), job("g", 4, each=4)]), POLICY)
    place = next(decision for decision in decided if decision.job == "g")
    mover = next(decision for decision in decided if decision.job != "g")
    assert place.after == (mover.job,)
    assert mover.beneficiary == "g"


def test_tenants_do_not_matter_to_moves() -> None:
    found = answers(
        FOUR,
        [*scattered(tenant="other"), job("g", 4, each=4)],
        tenants=(Tenant(id="team"), Tenant(id="other")),
    )
    assert found["g"].startswith("place")
