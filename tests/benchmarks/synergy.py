"""Synergy's replay: proportional, TUNE and OPT against the numbers of its published simulator.

``python -m tests.benchmarks.synergy --json``
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from scheduler.planner.sensitivity import Host
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


def main() -> None:
    """Print one line a policy and allocator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line (always so)")
    parser.parse_args()
    matrices, iteration_s = read_profiles(traces() / "synergy" / "profiles_1gpu.csv")
    trace = read_trace(traces() / "synergy" / "static_100job.csv", iteration_s=iteration_s)
    for name, published in PUBLISHED.items():
        for allocator in ("proportional", "greedy", "tune-as-published", "tune", "opt"):
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
