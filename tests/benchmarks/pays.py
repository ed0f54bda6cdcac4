"""What preemption, migration, elasticity and sensitivity bring, one added after another.

``python -m tests.benchmarks.pays --json [--part remedies|borrowing|promises] [--jobs N] [--seeds S]
[--long | --whole] [--trace philly|openb|ee9e8c] [--load L] [--apart N,R]``, costs on, three loads.

Excerpts (as a rule): for each seed other 1,000 consecutive jobs of at most half a day, on 128 GPUs;
tiers, elastic bounds and models are drawn by the seed. ``--long``: jobs of at most a day, 8,000 of
Philly on 512 GPUs, and all of openb on every twelfth of its own nodes, with its kinds, CPUs, tiers.
``--apart 0.15,0.3``: a job loses so much of its pace across nodes and across racks.
``--whole``: all 82,247 jobs of Philly, however long, on 512 GPUs (minutes a run), or with
``--trace ee9e8c`` all 1,508 of that virtual cluster on 128.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler.planner import Policy, Quota, Tenant, TenantId
from scheduler.simulator import Costs, Fleet, Trace, measure, policy_named, read_trace, simulate
from scheduler.simulator.fleet_file import read_fleet
from scheduler.simulator.fleets import node
from scheduler.simulator.splitting import Sensitivity, read_profiles
from scheduler.simulator.synthetic import dressed
from tests.benchmarks.published import figure, traces

NODES, GPUS = 16, 8
LONG_NODES, LONG_JOBS = 64, 8000
HALF_DAY, DAY = 43_200, 86_400
EVERY_NTH = 12
"""Of openb's nodes, so that its 7,000 jobs fill the fleet."""
LOADS = (0.95, 0.7, 1.2)
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


@dataclass(frozen=True)
class Subject:
    """A trace with what it does not say drawn by a seed, and the fleet it is played on."""

    trace: Trace
    fleet: Fleet
    profiled: bool
    """Whether the fleet's nodes are like those that the models' profiles were measured on."""
    costs: Costs = field(default_factory=Costs)


def grid(nodes: int) -> Fleet:
    """Nodes of 8 GPUs in racks of 4, with the CPUs and memory of Synergy's servers."""
    return Fleet(
        name=f"{nodes}x{GPUS}",
        nodes=tuple(
            node(f"n{n:02}", GPUS, cpus=24, memory=500 * 10**9, rack=f"r{n // 4}")
            for n in range(nodes)
        ),
    )


def excerpt(trace: Trace, jobs: int, seed: int, models: Sequence[str]) -> Subject:
    """Consecutive jobs of at most half a day, each seed's later in the trace than the last's."""
    fitting = tuple(
        replace(each, device_kinds=(), cpus=0.0, memory=0, tier="", share=1.0)
        for each in trace.arrivals
        if 0 < each.gpus <= NODES * GPUS // 2 and 0 < each.duration_s < HALF_DAY
    )
    begin = len(fitting) // 3 + (seed - 1) * jobs
    cut = replace(trace, arrivals=fitting[begin : begin + jobs])
    tiers = dressed(cut, seed=seed, tiers=TIERS, elastic=0.5, models=models)
    return Subject(tiers, grid(NODES), profiled=True)


def lengthy(trace: Trace, seed: int, models: Sequence[str]) -> Subject:
    """Many jobs of at most a day, on nodes of the trace's own where it has a list of them."""
    short = tuple(each for each in trace.arrivals if 0 < each.duration_s < DAY)
    if trace.name == "philly":
        begin = len(short) // 3 + (seed - 1) * LONG_JOBS
        cut = replace(trace, arrivals=short[begin : begin + LONG_JOBS])
        tiers = dressed(cut, seed=seed, tiers=TIERS, elastic=0.5, models=models)
        return Subject(tiers, grid(LONG_NODES), profiled=True)
    every = read_fleet(traces() / "openb" / "openb_node_list_gpu_node.csv")
    fleet = replace(every, name="openb/12", nodes=every.nodes[::EVERY_NTH])
    cut = replace(trace, arrivals=short)
    return Subject(dressed(cut, seed=seed, elastic=0.5), fleet, profiled=False)


def entire(trace: Trace, seed: int, models: Sequence[str]) -> Subject:
    """Every job of a trace, however long it is."""
    tiers = dressed(trace, seed=seed, tiers=TIERS, elastic=0.5, models=models)
    return Subject(tiers, grid(NODES if trace.name in SMALL else LONG_NODES), profiled=True)


def measured(subject: Subject, load: float, policy: Policy, **options: Any) -> dict[str, float]:
    """The figures of one run."""
    fleet = options.pop("fleet", subject.fleet)
    trace = subject.trace.at_load(load, fleet.devices)
    result = simulate(trace, fleet, policy, costs=subject.costs, **options)
    found: Any = measure(result)
    moves = found["moves"]
    return {
        "mean_jct_h": found["completion_s"]["mean"] / 3600,
        "p99_jct_h": found["completion_s"]["p99"] / 3600,
        "mean_wait_h": found["wait_s"]["mean"] / 3600,
        "utilisation": found["utilisation_loaded"],
        "fragmentation": found["fragmentation"],
        "moves": moves["preemptions"] + moves["migrations"] + moves["resizes"],
        "cost_share": moves["cost_share"],
        **{f"kept_{tier}": kept["share"] for tier, kept in found["promises"].items()},
        "finished": found["finished"],
        "jobs": found["jobs"],
        "cpu_s": result.timing.cpu_s,
    }


def tell(name: str, subject: Subject, load: float, runs: Sequence[Mapping[str, float]]) -> None:
    """One line: the mean of the seeds, and the range where there are several."""
    told: dict[str, Any] = {"trace": subject.trace.name, "fleet": subject.fleet.name}
    told |= {"load": load, "run": name, "seeds": len(runs)}
    for key in runs[0]:
        values = [run[key] for run in runs if key in run]
        told[key] = round(sum(values) / len(values), 5)
        if len(runs) > 1 and key in {"mean_jct_h", "p99_jct_h", "utilisation"}:
            told[f"{key}_range"] = [round(min(values), 4), round(max(values), 4)]
    figure(**told)


def remedies(several: Sequence[Subject], load: float) -> None:
    """Each remedy added to the ones before it, then the splitting of CPUs and memory."""
    switches: dict[str, bool] = dict(OFF)
    for name, more in STEPS:
        switches |= more
        policy = replace(policy_named("default"), **switches)
        tell(name, several[0], load, [measured(each, load, policy) for each in several])
    if several[0].profiled:
        split = Sensitivity(matrices=read_profiles(profiles())[0], allocator="tune")
        runs = [measured(each, load, policy, sensitivity=split) for each in several]
        tell("+ sensitivity", several[0], load, runs)


def borrowing(several: Sequence[Subject], load: float) -> None:
    """Virtual clusters behind walls, and the same with what is idle lent to others."""
    policy = replace(policy_named("default"), explain=False)
    for name, borrow in (("isolated", 0), ("borrowing", None)):
        runs = [measured(each, load, policy, fleet=reserving(each, borrow)) for each in several]
        tell(name, several[0], load, runs)


def reserving(subject: Subject, borrow: int | None) -> Fleet:
    """The fleet with a quota for each tenant, in proportion to its work in the trace."""
    work: dict[str, float] = {}
    for each in subject.trace.arrivals:
        work[each.tenant] = work.get(each.tenant, 0.0) + each.gpus * each.duration_s
    total = sum(work.values())
    of_kind: dict[str, int] = {}
    for one in subject.fleet.nodes:
        for device in one.devices:
            of_kind[device.kind] = of_kind.get(device.kind, 0) + 1
    return replace(
        subject.fleet,
        tenants=tuple(
            Tenant(
                id=TenantId(tenant),
                quotas={
                    kind: Quota(reserved=round(count * share / total), borrow=borrow, lend=True)
                    for kind, count in sorted(of_kind.items())
                },
            )
            for tenant, share in sorted(work.items())
        ),
    )


def promises(several: Sequence[Subject], load: float) -> None:
    """Who gets what was promised, against FIFO and SRTF."""
    for name in ("default", "fifo-backfill", "srtf"):
        policy = replace(policy_named(name), explain=False)
        tell(name, several[0], load, [measured(each, load, policy) for each in several])


Part = Callable[[Sequence[Subject], float], None]
PARTS: dict[str, tuple[Part, tuple[float, ...]]] = {
    "remedies": (remedies, LOADS),
    "borrowing": (borrowing, LOADS[:1]),
    "promises": (promises, LOADS[:1]),
}
FILES = {"philly": "philly/philly.csv", "openb": "openb/openb_pod_list_gpuspec33.csv"}
SMALL = {"ee9e8c": "tiresias/ee9e8c.csv"}
"""Played only if asked for, whole: of its jobs 60 % want several GPUs."""


def profiles() -> Any:
    """Synergy's measurements."""
    return traces() / "synergy" / "profiles_1gpu.csv"


def subject(trace: Trace, seed: int, options: argparse.Namespace) -> Subject:
    """The jobs asked for."""
    models = sorted(read_profiles(profiles())[0])
    nodes, racks = (float(part) for part in options.apart.split(","))
    costs = Costs(across_nodes=nodes, across_racks=racks, across_clusters=racks)
    if options.whole:
        found = entire(trace, seed, models)
    elif options.long:
        found = lengthy(trace, seed, models)
    else:
        found = excerpt(trace, options.jobs, seed, models)
    return replace(found, costs=costs)


def main() -> None:
    """Print the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line (always so)")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--apart", default="0,0", metavar="N,R")
    parser.add_argument("--part", choices=sorted(PARTS), action="append")
    parser.add_argument("--trace", choices=sorted({**FILES, **SMALL}), action="append")
    parser.add_argument("--load", type=float, action="append")
    options = parser.parse_args()
    for part in options.part or PARTS:
        play, loads = PARTS[part]
        for name in options.trace or (["philly"] if options.whole else FILES):
            trace = replace(read_trace(traces() / {**FILES, **SMALL}[name]), name=name)
            several = [subject(trace, seed, options) for seed in range(1, options.seeds + 1)]
            for load in options.load or loads:
                play(several, load)


if __name__ == "__main__":
    main()
