"""What preemption, migration, elasticity and sensitivity bring, one added after another.

``python -m tests.benchmarks.pays --json [--jobs N] [--part remedies|borrowing|promises]``: Philly
and openb on 128 GPUs, costs on, three loads. Tiers, elastic bounds and models are drawn by a seed;
jobs longer than half a day are left out, so that the load lasts for most of the run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from scheduler.planner import Policy, Quota, Tenant, TenantId
from scheduler.simulator import Costs, Fleet, Trace, measure, policy_named, read_trace, simulate
from scheduler.simulator.fleets import node
from scheduler.simulator.splitting import Sensitivity, read_profiles
from scheduler.simulator.synthetic import dressed
from tests.benchmarks.published import figure, traces

NODES, GPUS = 16, 8
LOADS = (0.7, 0.95, 1.2)
TIERS = {"premium": 0.2, "standard": 0.3, "basic": 0.5}
OFF = {
    "preemption": False,
    "migration": False,
    "elasticity": False,
    "defragmentation": False,
    "explain": False,
}
STEPS: tuple[tuple[str, dict[str, bool]], ...] = (
    ("place only", {}),
    ("+ preemption", {"preemption": True}),
    ("+ migration", {"migration": True, "defragmentation": True}),
    ("+ elasticity", {"elasticity": True}),
)


def fleet(tenants: tuple[Tenant, ...] = ()) -> Fleet:
    """16 nodes of 8 GPUs in racks of 4, with the CPUs and memory of Synergy's servers."""
    return Fleet(
        name=f"{NODES}x{GPUS}",
        tenants=tenants,
        nodes=tuple(
            node(f"n{n:02}", GPUS, cpus=24, memory=500 * 10**9, rack=f"r{n // 4}")
            for n in range(NODES)
        ),
    )


def subjects(jobs: int, models: list[str]) -> Iterator[Trace]:
    """The traces, with what they do not say drawn by a seed."""
    philly = read_trace(traces() / "philly" / "philly.csv")
    openb = read_trace(traces() / "openb" / "openb_pod_list_default.csv")
    for trace in (philly, openb):
        fitting = tuple(
            replace(each, device_kinds=(), cpus=0.0, memory=0, tier="", share=1.0)
            for each in trace.arrivals
            if 0 < each.gpus <= NODES * GPUS // 2 and 0 < each.duration_s < 43200
        )
        middle = fitting[len(fitting) // 3 :][:jobs]
        cut = replace(trace, arrivals=middle)
        yield dressed(cut, seed=1, tiers=TIERS, elastic=0.5, models=models)


def row(trace: Trace, load: float, name: str, policy: Policy, **options: Any) -> None:
    """Simulate and print one line of the table."""
    place = options.pop("fleet", fleet())
    result = simulate(trace.at_load(load, place.devices), place, policy, costs=Costs(), **options)
    measures: Any = measure(result)
    figure(
        trace=trace.name,
        load=load,
        run=name,
        mean_jct_h=round(measures["completion_s"]["mean"] / 3600, 2),
        p99_jct_h=round(measures["completion_s"]["p99"] / 3600, 1),
        mean_wait_h=round(measures["wait_s"]["mean"] / 3600, 2),
        utilisation=round(measures["utilisation_loaded"], 4),
        fragmentation=round(measures["fragmentation"], 4),
        moves=sum(measures["moves"][key] for key in ("preemptions", "migrations", "resizes")),
        cost_share=round(measures["moves"]["cost_share"], 5),
        kept={tier: round(kept["share"], 3) for tier, kept in measures["promises"].items()},
        finished=measures["finished"],
        jobs=measures["jobs"],
        cpu_s=round(result.timing.cpu_s, 1),
    )


def remedies(jobs: int) -> None:
    """Each remedy added to the ones before it, then the splitting of CPUs and memory."""
    matrices, _ = read_profiles(traces() / "synergy" / "profiles_1gpu.csv")
    for trace in subjects(jobs, sorted(matrices)):
        for load in LOADS:
            switches: dict[str, bool] = dict(OFF)
            for name, more in STEPS:
                switches |= more
                policy = replace(policy_named("default"), **switches)
                row(trace, load, name, policy)
            split = Sensitivity(matrices=matrices, allocator="tune")
            row(trace, load, "+ sensitivity", policy, sensitivity=split)


def borrowing(jobs: int) -> None:
    """Virtual clusters behind walls, and the same with what is idle lent to others."""
    for trace in subjects(jobs, []):
        work: dict[str, float] = {}
        for each in trace.arrivals:
            work[each.tenant] = work.get(each.tenant, 0.0) + each.gpus * each.duration_s
        total = sum(work.values())
        for name, borrow in (("isolated", 0), ("borrowing", None)):
            tenants = tuple(
                Tenant(
                    id=TenantId(tenant),
                    quotas={
                        "gpu": Quota(
                            reserved=round(NODES * GPUS * share / total), borrow=borrow, lend=True
                        )
                    },
                )
                for tenant, share in sorted(work.items())
            )
            policy = replace(policy_named("default"), explain=False)
            row(trace, 0.95, name, policy, fleet=fleet(tenants))


def promises(jobs: int) -> None:
    """Who gets what was promised at 95 % load, against FIFO and SRTF."""
    for trace in subjects(jobs, []):
        for name in ("default", "fifo-backfill", "srtf"):
            row(trace, 0.95, name, replace(policy_named(name), explain=False))


PARTS = {"remedies": remedies, "borrowing": borrowing, "promises": promises}


def main() -> None:
    """Print the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line (always so)")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--part", choices=sorted(PARTS), action="append")
    options = parser.parse_args()
    for part in options.part or PARTS:
        PARTS[part](options.jobs)


if __name__ == "__main__":
    main()
