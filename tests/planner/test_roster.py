"""A roster's versions read as they were made, whichever of them owns the table."""

from __future__ import annotations

import random

from scheduler.planner.roster import Roster
from tests.planner.sketches import job


def test_what_was_only_tried_can_be_taken_back() -> None:
    first = Roster([job("a", 1), job("b", 1)])
    tried = first.changed([job("a", 2), job("c", 1)], ["b"])
    first.own()
    assert {one.id for one in first} == {"a", "b"}
    second = first.changed([job("d", 1)])
    changes = second.since(tried)
    assert changes is not None and set(changes) == {"a", "b", "c", "d"}
    assert changes["c"] is None
    assert {one.id: one.devices for one in tried} == {"a": 2, "c": 1}


def test_versions_stand_whichever_owns_the_table() -> None:
    dice = random.Random(5)
    versions = [(Roster(), dict[str, int]())]
    for step in range(300):
        roster, table = dice.choice(versions[-6:])
        if dice.random() < 0.3:
            roster.own()
        gone = dice.sample(sorted(table), min(len(table), dice.randrange(3)))
        fresh = {f"j{dice.randrange(9)}": step + 1 for _ in range(dice.randrange(3))}
        after = {id: size for id, size in table.items() if id not in gone} | fresh
        changed = roster.changed([job(id, size) for id, size in fresh.items()], gone)
        versions.append((changed, after))
        for known, expected in dice.sample(versions, min(5, len(versions))):
            assert {one.id: one.devices for one in known} == expected
