"""When time alone changes who may ask whom."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from scheduler.planner import PRESETS, Job, Memory, plan
from scheduler.planner.crossings import Crossings, crossing
from scheduler.planner.promises import fraction
from tests.planner.sketches import NOW, given, job, node, told

LEVEL = 0.72


def running(dice: random.Random) -> Job:
    """A job of four replicas that runs on one to four devices, with some past."""
    held = dice.choice([1, 2, 4])
    seats = given([node("n1", 4)], [job("a", held, on="n1")]).jobs[0].seats
    waited = dice.uniform(10.0, 50_000.0)
    return replace(
        job("a", 4, on="n1", tier="standard", submitted_at=NOW - waited),
        seats=seats,
        measured_at=dice.choice([None, NOW, NOW - 5.0]),
        entitled=dice.choice([0.0, 4 * waited]),
        delivered=dice.random() * 4 * waited,
    )


@pytest.mark.parametrize("seed", range(60))
def test_a_fraction_changes_sides_only_when_it_crosses(seed: int) -> None:
    one = running(random.Random(seed))
    at = crossing(one, LEVEL, NOW)
    moments = [NOW + 10.0**power for power in range(8)]
    for earlier, later in pairwise(moments):
        changed = (fraction(one, earlier) > LEVEL) is not (fraction(one, later) > LEVEL)
        assert changed is (at is not None and earlier < at <= later)


def test_it_is_told_once_and_for_all_that_happened_since() -> None:
    crossings = Crossings()
    one = replace(running(random.Random(1)), measured_at=NOW, entitled=4000.0, delivered=2400.0)
    one = replace(one, seats=given([node("n1", 4)], [job("a", 4, on="n1")]).jobs[0].seats)
    at = crossing(one, LEVEL, NOW)
    assert at is not None and at > NOW
    crossings.note(one, LEVEL, NOW)
    assert not crossings.passed(at - 10.0)
    assert crossings.passed(at + 10.0)
    assert not crossings.passed(at + 20.0)
    crossings.note(one, LEVEL, NOW)
    crossings.forget(one.id)
    assert not crossings.passed(at + 10.0)


def test_one_that_comes_above_its_promise_gives_without_anything_else_happening() -> None:
    policy, memory = replace(PRESETS["default"], explain=False), Memory()
    rich = job(
        "rich", 4, on="n1", tier="standard", fewest_devices=1, measured_at=NOW,
        entitled=40_000.0, delivered=28_000.0, submitted_at=NOW - 10_000.0,
    )  # fmt: skip
    snapshot = given([node("n1", 4)], [rich, job("poor", 1, tier="standard")])
    assert plan(snapshot, policy, memory) == ()
    assert plan(replace(snapshot, now=NOW + 60.0), policy, memory) == ()
    later = replace(snapshot, now=NOW + 5000.0)
    assert told(plan(later, policy, memory)) == told(plan(later, policy))
    assert told(plan(later, policy, Memory()))["rich"].startswith("resize")
