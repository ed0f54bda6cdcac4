"""Packing Alibaba's pods onto its 6,212 GPUs until arrivals reach 130 % of them.

``python -m tests.benchmarks.packing --json``; published: Random 87.5 %, BestFit 93.1 %, FGD 95.4 %.
"""

from __future__ import annotations

import argparse
import csv
import random
import time
from collections.abc import Callable, Iterator, Sequence

from scheduler.simulator import read_trace
from scheduler.simulator.packing import (
    WHOLE,
    Demand,
    Fragmentation,
    Score,
    State,
    Tidy,
    at_random,
    best_fit,
    pack,
)
from tests.benchmarks.published import figure, traces

SCORES: dict[str, Callable[[Sequence[Demand]], Score]] = {
    "random": lambda usual: at_random,
    "best fit": lambda usual: best_fit,
    "fragmentation": Fragmentation,
    "ours": Tidy,
}
PUBLISHED = {"random": 0.875, "best fit": 0.931, "fragmentation": 0.954}


def nodes() -> list[State]:
    """Alibaba's nodes that have GPUs, empty."""
    path = traces() / "openb" / "openb_node_list_gpu_node.csv"
    with path.open(newline="", encoding="utf-8") as lines:
        return [
            State(
                int(row["cpu_milli"]),
                int(row["memory_mib"]) * 2**20,
                (WHOLE,) * int(row["gpu"]),
            )
            for row in csv.DictReader(lines)
        ]


def pods() -> list[Demand]:
    """What its pods want, in the order of their arrival."""
    trace = read_trace(traces() / "openb" / "openb_pod_list_default.csv", without_devices=True)
    return [
        Demand(round(each.cpus * 1000), each.memory, each.gpus, round(each.share * WHOLE))
        for each in trace.arrivals
    ]


def inflated(usual: Sequence[Demand], target: int, die: random.Random) -> Iterator[Demand]:
    """The pods shuffled, again and again, until they have asked for ``target``."""
    asked = 0
    while True:
        shuffled = list(usual)
        die.shuffle(shuffled)
        for demand in shuffled:
            yield demand
            asked += demand.devices * demand.part
            if asked >= target:
                return


def main() -> None:
    """Print one line a score: the mean over the seeds and their range."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line (always so)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--score", choices=sorted(SCORES), action="append")
    options = parser.parse_args()
    empty, usual = nodes(), pods()
    target = round(1.3 * sum(WHOLE * len(node.free) for node in empty))
    for name in options.score or SCORES:
        make = SCORES[name]
        began = time.perf_counter()
        score = make(usual)
        shares = []
        for seed in range(options.seeds):
            die = random.Random(seed)
            shares.append(pack(inflated(usual, target, die), empty, score, die=die).allocated)
        figure(
            score=name,
            allocated=round(sum(shares) / len(shares), 4),
            least=round(min(shares), 4),
            most=round(max(shares), 4),
            published=PUBLISHED.get(name),
            seeds=options.seeds,
            seconds=round(time.perf_counter() - began, 1),
        )


if __name__ == "__main__":
    main()
