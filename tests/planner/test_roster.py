"""Versions of a list of jobs."""

from __future__ import annotations

import random
from dataclasses import replace

from scheduler.planner import Roster
from tests.planner.sketches import job


def test_every_version_reads_as_it_was() -> None:
    dice = random.Random(5)
    versions = [(Roster([job("a"), job("b")]), {"a": 1, "b": 1})]
    for _ in range(60):
        roster, expected = versions[-1]
        names = [f"k{dice.randint(0, 9)}" for _ in range(dice.randint(0, 3))]
        gone = [f"k{dice.randint(0, 9)}" for _ in range(dice.randint(0, 2))]
        gone = [name for name in gone if name not in names]
        fresh = {name: job(name, dice.randint(1, 9)) for name in names}
        now = {name: size for name, size in expected.items() if name not in gone}
        now |= {name: one.devices for name, one in fresh.items()}
        versions.append((roster.changed(fresh.values(), gone), now))
    for roster, expected in versions:
        assert {one.id: one.devices for one in roster} == expected
        assert len(roster) == len(expected)


def test_it_knows_what_changed_since_an_older_version() -> None:
    first = Roster([job("a"), job("b")])
    second = first.changed([job("c")], ["a"])
    grown = job("b", 4)
    third = second.changed([grown])
    assert third.since(first) == {"a": None, "b": grown, "c": third.get("c")}
    assert third.since(third) == {}
    assert second.since(first) is None
    assert third.since(Roster()) is None


def test_an_older_version_can_be_branched() -> None:
    first = Roster([job("a")])
    newer = first.changed([job("b")])
    branch = first.changed([job("c")])
    assert [one.id for one in newer] == ["a", "b"]
    assert [one.id for one in branch] == ["a", "c"]
    assert branch.since(newer) is None
    assert branch[0] == first[0] == replace(newer[0])
    assert first == (job("a"),)
