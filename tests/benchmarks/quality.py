"""The planner beside the exact optimum on small fleets: ``python -m tests.benchmarks.quality``.

Two questions: how much of the value that could be placed is placed (devices weighted by tier), and
whether a gang pushes off as few as can be. The optimum comes from an integer program (HiGHS).
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

from scheduler.planner import PRESETS, Job, Node, Place, Preempt, Remedy, Snapshot, plan
from tests.planner.sketches import TIERS, given, job, node
from tests.planner.strategies import seat

POLICY = PRESETS["default"]
RANK = {tier.id: tier.rank for tier in TIERS}


def fleet(dice: random.Random) -> list[Node]:
    return [
        node(f"n{index}", dice.choice([4, 8, 8]), rack=f"r{index // 3}")
        for index in range(dice.randint(3, 7))
    ]


def gang(dice: random.Random, id_: str) -> Job:
    each = dice.choice([1, 1, 1, 2, 2, 4, 8])
    replicas = dice.choice([1, 1, 1, 1, 2, 3])
    return job(
        id_, each * replicas, each=each, tier=dice.choice(TIERS).id,
        submitted_at=1_000_000.0 - dice.randint(10, 3000),
    )  # fmt: skip


def crowd(dice: random.Random, nodes: list[Node], share: float, **fields: object) -> list[Job]:
    """Running jobs on about this share of the devices."""
    taken: set[tuple[str, str]] = set()
    found: list[Job] = []
    whole = sum(len(one.devices) for one in nodes)
    for index in range(60):
        if len(taken) >= share * whole:
            break
        wanted = replace(gang(dice, f"r{index}"), **fields)
        seated = seat(wanted, nodes, taken, dice.randrange(len(nodes)))
        if seated is not None:
            found.append(replace(seated, started_at=0.0))
    return found


def a_queue(seed: int) -> Snapshot:
    """Some running jobs that nobody may touch, and a queue beyond what is free."""
    dice = random.Random(seed)
    nodes = fleet(dice)
    runs = crowd(dice, nodes, 0.4, remedy=Remedy.REQUEUE, tier="premium")
    waits = [gang(dice, f"w{index}") for index in range(dice.randint(6, 20))]
    return given(nodes, runs + waits)


def a_push(seed: int) -> Snapshot:
    """A full fleet of basic jobs, and one premium job."""
    dice = random.Random(seed)
    nodes = fleet(dice)
    runs = crowd(dice, nodes, 0.95, tier="basic")
    each = dice.choice([1, 2, 4, 4])
    high = job("high", each * dice.choice([1, 2, 3, 4]), each=each, tier="premium")
    return given(nodes, [*runs, high])


def free_of(snapshot: Snapshot) -> dict[str, int]:
    free = {one.id: len(one.devices) for one in snapshot.nodes}
    for one in snapshot.jobs:
        for name, _ in {(s.node, device) for s in one.seats for device in s.devices}:
            free[name] -= 1
    return free


def best_value(snapshot: Snapshot) -> float:
    """The largest value that can be placed on what is free."""
    jobs = [one for one in snapshot.jobs if not one.seats]
    free = list(free_of(snapshot).values())
    count, width = len(jobs), len(jobs) * len(free)
    # Variables: per job whether it runs, then per job and node how many replicas are there.
    matrix = lil_matrix((count + len(free), count + width))
    for index, one in enumerate(jobs):
        matrix[index, index] = -one.replicas
        for at in range(len(free)):
            matrix[index, count + index * len(free) + at] = 1
            matrix[count + at, count + index * len(free) + at] = one.gpus_per_replica
    lower = np.concatenate([np.zeros(count), np.full(len(free), -np.inf)])
    upper = np.concatenate([np.zeros(count), np.array(free)])
    worth = [one.devices * (1 + RANK[one.tier]) for one in jobs]
    found = milp(
        np.concatenate([-np.array(worth, dtype=float), np.zeros(width)]),
        constraints=LinearConstraint(matrix.tocsr(), lower, upper),
        integrality=np.ones(count + width),
        bounds=Bounds(0, np.concatenate([np.ones(count), np.full(width, 64)])),
    )
    return -float(found.fun)


def placed_value(snapshot: Snapshot) -> float:
    table = {one.id: one for one in snapshot.jobs}
    return sum(
        table[one.job].devices * (1 + RANK[table[one.job].tier])
        for one in plan(snapshot, POLICY)
        if isinstance(one, Place)
    )


def fewest_victims(snapshot: Snapshot) -> int | None:
    """The smallest number of jobs that must leave for the one that waits."""
    wanted = next(one for one in snapshot.jobs if not one.seats)
    runs = [one for one in snapshot.jobs if one.seats]
    names = [one.id for one in snapshot.nodes]
    free = free_of(snapshot)
    matrix = lil_matrix((len(names) + 1, len(runs) + len(names)))
    for index, one in enumerate(runs):
        for place in {(s.node, device) for s in one.seats for device in s.devices}:
            matrix[names.index(place[0]), index] -= 1
    for at in range(len(names)):
        matrix[at, len(runs) + at] = wanted.gpus_per_replica
        matrix[len(names), len(runs) + at] = 1
    lower = np.concatenate([np.full(len(names), -np.inf), [wanted.replicas]])
    upper = np.concatenate([np.array([free[name] for name in names]), [np.inf]])
    found = milp(
        np.concatenate([np.ones(len(runs)), np.zeros(len(names))]),
        constraints=LinearConstraint(matrix.tocsr(), lower, upper),
        integrality=np.ones(len(runs) + len(names)),
        bounds=Bounds(0, np.concatenate([np.ones(len(runs)), np.full(len(names), 64)])),
    )
    return round(found.fun) if found.success else None


def chosen_victims(snapshot: Snapshot) -> int | None:
    decided = plan(snapshot, replace(POLICY, migration=False))
    if not any(isinstance(one, Place) for one in decided):
        return None
    return sum(isinstance(one, Preempt) for one in decided)


def measure(seed: int, count: int) -> dict[str, object]:
    """Mean share of the optimal value, and share of cases with the fewest victims."""
    shares, same, cases = [], 0, 0
    for case in range(seed, seed + count):
        queue = a_queue(case)
        best = best_value(queue)
        if best:
            shares.append(placed_value(queue) / best)
        push = a_push(case)
        fewest = fewest_victims(push)
        if fewest is not None:
            cases += 1
            same += chosen_victims(push) == fewest
    return {
        "benchmark": "quality",
        "fleets": count,
        "value_share": round(sum(shares) / len(shares), 4),
        "worst_value_share": round(min(shares), 4),
        "pushes": cases,
        "fewest_share": round(same / cases, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    print(json.dumps(measure(options.seed, options.fleets)))


if __name__ == "__main__":
    main()
