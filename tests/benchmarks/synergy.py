"""Synergy's replay: proportional, TUNE and OPT against the numbers of its published simulator.

``python -m tests.benchmarks.synergy --json``
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace

from scheduler.planner.sensitivity import Host, Matrix
from scheduler.simulator import Costs, measure, policy_named, pool, read_trace, simulate
from scheduler.simulator.splitting import Sensitivity, read_profiles
from tests.benchmarks.published import figure, traces

HOSTS = tuple(Host(id=f"server-{n}", gpus=8, cpus=24, memory=500e9) for n in range(4))
PUBLISHED = {
    "pool-fifo": {"proportional": (20272, 15.25), "tune": (18298, 11.00)},
    "pool-srtf": {"proportional": (15883, 14.08), "tune": (14785, 12.92)},
    "pool-las": {"proportional": (20251, 11.42), "tune": (18616, 10.67)},
}
"""Mean completion in seconds and makespan in hours, 32 GPUs, no costs."""


STEPS = tuple(300.0 * step for step in range(1, 900))
"""Attained service is compared in steps of a round, as Synergy does."""


def at_best(
    matrices: Mapping[str, Matrix], iteration_s: Mapping[str, float]
) -> tuple[dict[str, Matrix], dict[str, float]]:
    """The same profiles told from each job's best pace, not from the proportional share's.

    Synergy's SRTF, once it re-splits, reckons what remains at a job's best pace, even while
    there are too few CPUs for that pace: short jobs by that reckoning go first, whatever they take.
    """
    best = {model: max(max(row) for row in one.paces) for model, one in matrices.items()}
    return {
        model: replace(
            one, paces=tuple(tuple(pace / best[model] for pace in row) for row in one.paces)
        )
        for model, one in matrices.items()
    }, {model: seconds / best[model] for model, seconds in iteration_s.items()}


def main() -> None:
    """Print one line a policy and allocator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line (always so)")
    parser.parse_args()
    profiles = read_profiles(traces() / "synergy" / "profiles_1gpu.csv")
    for name, published in PUBLISHED.items():
        for allocator in ("proportional", "greedy", "tune-as-published", "tune", "opt"):
            as_published = name == "pool-srtf" and allocator == "tune-as-published"
            matrices, iteration_s = at_best(*profiles) if as_published else profiles
            trace = read_trace(traces() / "synergy" / "static_100job.csv", iteration_s=iteration_s)
            result = simulate(
                trace,
                pool(32),
                replace(policy_named(name), explain=False, las_steps=STEPS),
                costs=Costs.off(),
                sensitivity=Sensitivity(matrices=matrices, allocator=allocator, hosts=HOSTS),
            )
            measures = measure(result)
            completion = measures["completion_s"]
            figure(
                policy=name,
                allocator=allocator,
                mean_jct_s=round(completion["mean"]),  # type: ignore[index]
                makespan_h=round(measures["makespan_s"] / 3600, 2),  # type: ignore[operator]
                published=published.get(allocator.removesuffix("-as-published")),
            )


if __name__ == "__main__":
    main()
