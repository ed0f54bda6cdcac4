"""The planner's rules on very many generated fleets: ``python -m tests.benchmarks.safety``."""

from __future__ import annotations

import argparse
import json
import time
import traceback

from scheduler.planner import plan
from scheduler.planner.invariants import check
from tests.planner.strategies import a_policy, a_snapshot
from tests.planner.test_life import a_life, a_quiet_life
from tests.planner.test_properties import mixed, recall, settle, unanswered


def one(seed: int) -> None:
    """Every property once. Raises AssertionError if a rule is broken."""
    snapshot, policy = a_snapshot(seed), a_policy(seed * 7 + 1)
    decided = plan(snapshot, policy)
    assert check(snapshot, decided, policy) == []
    shuffled = plan(mixed(snapshot, seed), policy)
    assert sorted(map(repr, shuffled)) == sorted(map(repr, decided))
    kind = seed % 3
    if kind == 0:
        settle(snapshot, policy)
    elif kind == 1:
        recall(snapshot, policy, seed)
    else:
        a_life(seed, policy, steps=12)
    unanswered(snapshot, policy, seed // 3)
    if seed % 2:
        a_quiet_life(seed, policy, steps=6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    began, tried, broken = time.perf_counter(), 0, []
    for seed in range(options.seed, options.seed + options.examples):
        if time.perf_counter() - began > options.seconds:
            break
        tried += 1
        try:
            one(seed)
        except Exception:
            broken.append(seed)
            if not options.json:
                print(f"seed {seed}: {traceback.format_exc(limit=-3)}")
    result = {
        "benchmark": "safety",
        "examples": tried,
        "violations": len(broken),
        "seeds": broken[:20],
        "seconds": round(time.perf_counter() - began, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
