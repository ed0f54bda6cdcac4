"""What must never happen, on generated fleets."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings

from scheduler.planner import Hold, Memory, Policy, Roster, Snapshot, plan
from scheduler.planner.invariants import check
from scheduler.planner.paper import enacted
from tests.planner.strategies import a_policy, a_snapshot, policies, seeds, snapshots

quick = settings(max_examples=100, deadline=None, derandomize=True)


@quick
@given(snapshots, policies)
def test_no_rule_is_broken(snapshot: Snapshot, policy: Policy) -> None:
    assert check(snapshot, plan(snapshot, policy), policy) == []


@quick
@given(snapshots, policies, seeds)
def test_the_order_of_rows_does_not_matter(snapshot: Snapshot, policy: Policy, seed: int) -> None:
    shuffled = mixed(snapshot, seed)
    assert sorted(map(repr, plan(shuffled, policy))) == sorted(map(repr, plan(snapshot, policy)))


def mixed(snapshot: Snapshot, seed: int) -> Snapshot:
    """The same facts in another order."""
    dice = random.Random(seed)
    return replace(
        snapshot,
        nodes=tuple(dice.sample(snapshot.nodes, len(snapshot.nodes))),
        jobs=tuple(dice.sample(tuple(snapshot.jobs), len(snapshot.jobs))),
        tenants=tuple(dice.sample(snapshot.tenants, len(snapshot.tenants))),
        tiers=tuple(dice.sample(snapshot.tiers, len(snapshot.tiers))),
    )


@quick
@given(snapshots, policies)
def test_planning_settles(snapshot: Snapshot, policy: Policy) -> None:
    settle(snapshot, policy)


def settle(snapshot: Snapshot, policy: Policy) -> Snapshot:
    """Apply, plan again: within as many rounds as there are jobs only holds remain."""
    for _ in range(len(snapshot.jobs) + 2):
        decided = plan(snapshot, policy)
        assert check(snapshot, decided, policy) == []
        if all(isinstance(decision, Hold) for decision in decided):
            return snapshot
        snapshot = enacted(snapshot, decided)
    raise AssertionError(f"still moving: {decided}")


@quick
@given(snapshots, policies, seeds)
def test_answers_to_those_who_wait_change_nothing(
    snapshot: Snapshot, policy: Policy, seed: int
) -> None:
    unanswered(snapshot, policy, seed)


def unanswered(snapshot: Snapshot, policy: Policy, seed: int) -> None:
    """With and without holds the same is done, also where no quota parts the tenants."""
    if seed % 2:
        tenants = tuple(replace(each, quotas={}) for each in snapshot.tenants)
        snapshot = replace(snapshot, tenants=tenants)
    for _ in range(3):
        told = plan(snapshot, replace(policy, explain=True))
        acts = tuple(each for each in told if not isinstance(each, Hold))
        assert plan(snapshot, replace(policy, explain=False)) == acts
        after = enacted(snapshot, acts)
        snapshot = replace(after, now=after.now + 400.0 * (1 + seed % 20))


@quick
@given(snapshots, policies, seeds)
def test_a_plan_does_not_depend_on_what_is_remembered(
    snapshot: Snapshot, policy: Policy, seed: int
) -> None:
    recall(snapshot, policy, seed)


def test_a_device_with_two_holders_is_free_when_both_have_left() -> None:
    # Only one of the two is enough of a victim; with time it becomes the cheaper one.
    seed = 800031067
    recall(a_snapshot(seed), a_policy(seed * 7 + 1), seed)


def test_who_comes_where_another_still_is_uses_up_what_was_set_aside() -> None:
    seed = 1100046400
    recall(a_snapshot(seed), a_policy(seed * 7 + 1), seed)


def recall(snapshot: Snapshot, policy: Policy, seed: int) -> None:
    """A few cycles, of whose plans only a part comes true, with a memory and without."""
    dice, memory = random.Random(seed), Memory()
    roster = Roster(snapshot.jobs)
    for step in range(4):
        snapshot = replace(snapshot, jobs=roster, now=snapshot.now + 400.0 * step)
        if seed % 3 == 0:
            # Rows read anew: equal facts, none of them the same object as before.
            snapshot = replace(
                snapshot,
                jobs=tuple(replace(job) for job in roster),
                nodes=tuple(replace(node) for node in snapshot.nodes),
                tenants=tuple(replace(tenant) for tenant in snapshot.tenants),
                tiers=tuple(replace(tier) for tier in snapshot.tiers),
            )
        remembered = plan(snapshot, policy, memory)
        assert remembered == plan(replace(snapshot, jobs=tuple(roster)), policy)
        then = {job.id: job for job in enacted(snapshot, remembered).jobs}
        chosen = [id_ for id_ in sorted(then) if dice.random() < 0.7]
        gone = [id_ for id_ in sorted(then) if dice.random() < 0.1]
        changed = [
            then[id_] for id_ in chosen if id_ not in gone and then[id_] is not roster.get(id_)
        ]
        roster = roster.changed(changed, gone)
