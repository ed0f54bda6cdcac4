"""Putting parts of devices on nodes: what fits, what is left, and who wastes least."""

import random

import pytest

from scheduler.simulator.packing import (
    WHOLE,
    Demand,
    Fragmentation,
    State,
    Tidy,
    at_random,
    best_fit,
    options,
    pack,
)

NODE = State(64_000, 10**12, (WHOLE,) * 4)


def half(milli: int = 1000) -> Demand:
    return Demand(milli, 0, 1, 500)


def test_a_part_goes_beside_another_or_on_a_whole_device():
    (first,) = options(half(), NODE)
    assert first.free == (500, WHOLE, WHOLE, WHOLE)
    assert {after.free for after in options(half(), first)} == {
        (0, WHOLE, WHOLE, WHOLE),
        (500, 500, WHOLE, WHOLE),
    }


def test_whole_devices_must_be_wholly_free_and_cpus_must_do():
    (after,) = options(Demand(1000, 0, 3, WHOLE), NODE)
    assert after == State(63_000, 10**12, (0, 0, 0, WHOLE))
    assert list(options(Demand(1000, 0, 2, WHOLE), after)) == []
    assert list(options(half(milli=65_000), NODE)) == []
    assert list(options(Demand(5000, 0, 0, 0), NODE)) == [State(59_000, 10**12, NODE.free)]


def test_fragmentation_is_what_the_usual_task_cannot_use():
    measure = Fragmentation([half(), Demand(1000, 0, 1, WHOLE)])
    assert measure.of(NODE) == 0
    assert measure.of(State(64_000, 0, (500, WHOLE))) == 250
    assert measure.of(State(500, 0, (500, WHOLE))) == 1500


@pytest.mark.parametrize("seed", range(3))
def test_tidiness_wastes_less_than_chance(seed: int):
    die = random.Random(seed)
    kinds = [Demand(4000, 0, 1, 300), Demand(8000, 0, 1, 700), Demand(8000, 0, 1, WHOLE)]
    usual = [*kinds, Demand(32_000, 0, 4, WHOLE)]
    demands = die.choices(usual, [4, 3, 3, 1], k=260)
    nodes = [NODE] * 40
    shares = {
        name: pack(demands, nodes, score, die=random.Random(seed)).allocated
        for name, score in {
            "chance": at_random, "fit": best_fit, "tidy": Tidy(demands),
        }.items()
    }  # fmt: skip
    assert shares["tidy"] > shares["chance"]
    assert shares["tidy"] >= shares["fit"] - 0.02
