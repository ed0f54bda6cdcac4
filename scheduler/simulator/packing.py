"""Parts of devices: which node and which device a task of a share goes to.

The live fleet gives whole devices; this is the study of what sharing them would waste. Nodes are
searched by their state (what is free on them), since most nodes are in a state that others are in
too. Amounts are thousandths of a CPU and of a device, as Alibaba's trace has them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

WHOLE = 1000


class Demand(NamedTuple):
    """What a task wants: CPUs, bytes, devices and how much of each."""

    milli: int
    memory: int
    devices: int
    part: int


class State(NamedTuple):
    """What is free on a node; devices from the fullest to the emptiest."""

    milli: int
    memory: int
    free: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Packed:
    """How a packing went."""

    allocated: float
    """Share of all devices given to tasks."""
    refused: int
    """Tasks that fitted nowhere."""


Score = Callable[[Demand, State, State], float]
"""How bad it is to bring a node from one state to the other; the lowest wins."""


def options(demand: Demand, state: State) -> Iterable[State]:
    """The states a node can be in after the task was put on it."""
    if demand.milli > state.milli or demand.memory > state.memory:
        return
    milli, memory, free = state.milli - demand.milli, state.memory - demand.memory, state.free
    if demand.devices == 0:
        yield State(milli, memory, free)
    elif demand.part == WHOLE:
        first = len(free) - demand.devices
        if first >= 0 and free[first] == WHOLE:
            yield State(milli, memory, tuple(sorted(free[:first] + (0,) * demand.devices)))
    else:
        tried = 0
        for place, left in enumerate(free):
            if left >= demand.part and left != tried:
                tried = left
                after = (*free[:place], left - demand.part, *free[place + 1 :])
                yield State(milli, memory, tuple(sorted(after)))


def pack(
    demands: Iterable[Demand], nodes: Sequence[State], score: Score, *, die: random.Random
) -> Packed:
    """Put tasks on nodes one by one, each where the score is lowest; ties by a die."""
    counts = Counter(nodes)
    known: dict[tuple[Demand, State], tuple[float, State] | None] = {}
    used = refused = 0
    capacity = sum(WHOLE * len(node.free) for node in nodes)
    for demand in demands:
        best: list[tuple[float, State, State]] = []
        for state in counts:
            key = (demand, state)
            if key not in known:
                known[key] = min(
                    ((score(demand, state, after), after) for after in options(demand, state)),
                    default=None,
                )
            found = known[key]
            if found is None or (best and found[0] > best[0][0]):
                continue
            if best and found[0] < best[0][0]:
                best.clear()
            best.append((found[0], state, found[1]))
        if not best:
            refused += 1
            continue
        _, before, after = die.choices(best, [counts[state] for _, state, _ in best])[0]
        counts[before] -= 1
        if not counts[before]:
            del counts[before]
        counts[after] += 1
        used += demand.devices * demand.part
    return Packed(allocated=used / capacity, refused=refused)


def at_random(demand: Demand, before: State, after: State) -> float:
    """Anywhere it fits."""
    return 0.0


def best_fit(demand: Demand, before: State, after: State) -> float:
    """Where least is left: CPUs and devices weighed alike."""
    return sum(after.free) / WHOLE / 8 + after.milli / 128_000


class Fragmentation:
    """Which part of what is idle cannot be used by the tasks that usually come (FGD, ATC'23).

    Calling it scores an assignment by how much that part grows.
    """

    def __init__(self, usual: Iterable[Demand]) -> None:
        counted = Counter(
            Demand(each.milli, 0, each.devices, each.part) for each in usual if each.devices
        )
        self._kinds = [(demand, count / counted.total()) for demand, count in counted.items()]
        self._known: dict[tuple[int, tuple[int, ...]], float] = {}

    def __call__(self, demand: Demand, before: State, after: State) -> float:
        return self.of(after) - self.of(before)

    def of(self, state: State) -> float:
        """Expected thousandths of devices that are idle and useless."""
        key = (state.milli, state.free)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = sum(
                share * _useless(demand, state) for demand, share in self._kinds
            )
        return found


class Tidy:
    """Fragmentation first, and among assignments that are nearly as good, the best fit."""

    WEIGHT = 30.0
    """Thousandths of a device of fragmentation that a fully better fit is worth."""

    def __init__(self, usual: Iterable[Demand]) -> None:
        self._fragmentation = Fragmentation(usual)

    def __call__(self, demand: Demand, before: State, after: State) -> float:
        growth = self._fragmentation(demand, before, after)
        return growth + self.WEIGHT * best_fit(demand, before, after)


def _useless(demand: Demand, state: State) -> int:
    idle = sum(state.free)
    usable = sum(left for left in state.free if left >= demand.part)
    enough = sum(left >= demand.part for left in state.free) >= demand.devices
    return idle - usable if enough and demand.milli <= state.milli else idle
