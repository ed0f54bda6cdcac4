"""How fast one cycle plans: ``python -m tests.benchmarks.planner --nodes 12500 --json``.

``cold_s`` is a cycle that remembers nothing, ``warm_s`` one after 100 changes with the memory of
the one before (the median of several). Only ``plan`` is timed: the snapshot is there already.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import time
from dataclasses import replace

from scheduler.planner import (
    PRESETS,
    Device,
    Hold,
    Job,
    Memory,
    Node,
    Phase,
    Plan,
    Quota,
    Roster,
    Seat,
    Snapshot,
    Tenant,
    Tier,
    plan,
)
from scheduler.planner.paper import after

NOW = 10_000_000.0
TIERS = (
    Tier(id="basic", rank=0),
    Tier(id="standard", rank=1, promise=0.70),
    Tier(id="premium", rank=2, promise=0.95),
)
SIZES = {1: 500, 2: 170, 4: 130, 8: 140, 16: 34, 32: 12, 64: 6, 128: 2, 256: 1, 512: 1}


def fleet(nodes: int, gpus: int, clusters: int) -> tuple[Node, ...]:
    """Nodes in racks of 16, racks in clusters of equal size, clusters in regions of five."""
    each = max(1, -(-nodes // clusters))
    return tuple(
        Node(
            id=f"n{index:05}",
            devices=tuple(
                Device(id=f"g{gpu}", kind="h100", memory=80 << 30) for gpu in range(gpus)
            ),
            cpus=gpus * 12.0,
            memory=gpus * 128 << 30,
            rack=f"r{index // 16:04}",
            cluster=f"c{index // each:02}",
            region=f"e{index // each // 5}",
        )
        for index in range(nodes)
    )


def tenants(count: int, devices: int) -> tuple[Tenant, ...]:
    """Half of the fleet is reserved in equal parts; all may borrow, some without end."""
    own = devices // (2 * count)
    return tuple(
        Tenant(
            id=f"t{index:02}",
            quotas={"h100": Quota(reserved=own, borrow=None if index % 2 else 3 * own)},
            weight=1.0 + index % 3,
            usage=float(index * 1e7 % 9e8),
        )
        for index in range(count)
    )


def size(dice: random.Random, most: int) -> int:
    return min(most, dice.choices(tuple(SIZES), tuple(SIZES.values()))[0])


def a_job(dice: random.Random, id_: str, devices: int) -> Job:
    """One job: up to eight devices in one replica of it, more in replicas of eight."""
    each = min(devices, 8)
    submitted = NOW - dice.random() * 200_000
    return Job(
        id=id_,
        tenant=f"t{dice.randrange(50):02}",
        tier=dice.choices(("basic", "standard", "premium"), (5, 3, 2))[0],
        phase=Phase.WAITING,
        submitted_at=submitted,
        waiting_since=submitted,
        replicas=devices // each,
        gpus_per_replica=each,
        fewest_devices=each if devices > each and dice.random() < 0.2 else None,
        expected_s=dice.random() * 90_000 if dice.random() < 0.5 else None,
        bytes=dice.randrange(1 << 30, 200 << 30),
    )


class Seats:
    """Hands out devices node after node, with holes as time leaves them."""

    def __init__(self, nodes: tuple[Node, ...], dice: random.Random) -> None:
        self.dice = dice
        self.nodes = list(nodes)
        self.free = {node.id: [device.id for device in node.devices] for node in nodes}
        self.partial: list[list[Node]] = [[] for _ in nodes[0].devices]
        self.at = 0

    def take(self, job: Job) -> Job | None:
        each, seats = job.gpus_per_replica, []
        if job.replicas > 1 and job.replicas > len(self.nodes) - self.at:
            return None
        for rank in range(job.replicas):
            node = self._node(each)
            if node is None:
                return None
            devices = tuple(self.free[node.id][:each])
            del self.free[node.id][:each]
            seats.append(Seat(rank=rank, node=node.id, devices=devices))
            if self.free[node.id]:
                self.partial[len(self.free[node.id])].append(node)
        started = job.submitted_at + self.dice.random() * (NOW - job.submitted_at)
        wanted = job.devices * (NOW - job.submitted_at)
        return replace(
            job, phase=Phase.RUNNING, seats=tuple(seats), started_at=started, measured_at=NOW,
            delivered=job.devices * (NOW - started), entitled=wanted,
        )  # fmt: skip

    def _node(self, each: int) -> Node | None:
        for found in self.partial[each:]:
            if found and self.dice.random() < 0.95:
                return found.pop()
        if self.at == len(self.nodes):
            return None
        self.at += 1
        return self.nodes[self.at - 1]


def busy(options: argparse.Namespace) -> Snapshot:
    """A fleet nearly full, and a queue of every size."""
    dice = random.Random(options.seed)
    nodes = fleet(options.nodes, options.gpus_per_node, 20)
    devices = options.nodes * options.gpus_per_node
    seats = Seats(nodes, dice)
    jobs: list[Job] = []
    failed = 0
    while len(jobs) < options.running and failed < 1000:
        seated = seats.take(a_job(dice, f"j{len(jobs):06}", size(dice, devices // 64)))
        if seated is None:
            failed += 1
        else:
            jobs.append(seated)
    # Holes: what ended just now.
    dice.shuffle(jobs)
    jobs = jobs[: int(len(jobs) * 0.995)]
    first = len(jobs) + options.running
    for index in range(options.waiting):
        jobs.append(a_job(dice, f"j{first + index:06}", size(dice, devices // 64)))
    return Snapshot(
        now=NOW, nodes=nodes, jobs=tuple(jobs), tenants=tenants(50, devices), tiers=TIERS
    )


def flood(options: argparse.Namespace) -> Snapshot:
    """Armada's case: 64,000 jobs of one device, and room for 8,000."""
    dice = random.Random(options.seed)
    nodes = fleet(1000, 8, 1)
    jobs = tuple(a_job(dice, f"j{index:06}", 1) for index in range(64_000))
    return Snapshot(now=NOW, nodes=nodes, jobs=jobs, tenants=(), tiers=TIERS)


def changed(snapshot: Snapshot, decided: Plan, dice: random.Random, count: int) -> Snapshot:
    """A second later: a part of the plan came true, some jobs ended, some arrived."""
    assert isinstance(snapshot.jobs, Roster)
    roster, now = snapshot.jobs, snapshot.now + 1.0
    did = [decision for decision in decided if not isinstance(decision, Hold)]
    table = {job.id: job for job in roster}
    came = [after(table[decision.job], decision, now) for decision in did]
    running = [job.id for job in table.values() if job.phase is Phase.RUNNING]
    ended = set(dice.sample(running, min(len(running), count // 2)))
    fresh = [
        replace(a_job(dice, f"k{now:.0f}-{index}", size(dice, 64)), submitted_at=now)
        for index in range(count // 2)
    ]
    kept = [job for job in came if job.id not in ended]
    return replace(snapshot, now=now, jobs=roster.changed(kept + fresh, ended))


def measure(options: argparse.Namespace) -> dict[str, object]:
    """One cold cycle and several warm ones."""
    snapshot = flood(options) if options.case == "armada" else busy(options)
    policy = PRESETS[options.policy]
    gc.collect()
    gc.freeze()
    memory = Memory()
    began, worked = time.perf_counter(), time.process_time()
    decided = plan(snapshot, policy, memory)
    cold, cold_cpu = time.perf_counter() - began, time.process_time() - worked
    result: dict[str, object] = {
        "benchmark": "planner",
        "case": options.case,
        "policy": policy.name,
        "nodes": len(snapshot.nodes),
        "gpus": sum(len(node.devices) for node in snapshot.nodes),
        "running": sum(job.phase is Phase.RUNNING for job in snapshot.jobs),
        "waiting": sum(job.phase is Phase.WAITING for job in snapshot.jobs),
        "used": sum(job.devices for job in snapshot.jobs if job.seats),
        "cold_s": round(cold, 4),
        "cold_cpu_s": round(cold_cpu, 4),
        "decisions": len(decided),
    }
    for name in ("Place", "Preempt", "Migrate", "Resize", "Hold"):
        result[name.lower() + ("d" if name == "Place" else "s")] = sum(
            type(decision).__name__ == name for decision in decided
        )
    result["warm_s"], result["warm_cpu_s"] = _warm(snapshot, decided, options, memory)
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return result


def _warm(
    snapshot: Snapshot, decided: Plan, options: argparse.Namespace, memory: Memory
) -> tuple[float, float]:
    """The median of cycles with 100 changes each, once the first plan has come true."""
    dice = random.Random(options.seed)
    snapshot = replace(snapshot, jobs=Roster(snapshot.jobs))
    plan(snapshot, PRESETS[options.policy], memory)
    times = []
    for cycle in range(9):
        snapshot = changed(snapshot, decided, dice, 100)
        began, worked = time.perf_counter(), time.process_time()
        decided = plan(snapshot, PRESETS[options.policy], memory)
        if cycle:
            times.append((time.perf_counter() - began, time.process_time() - worked))
    walls, cpus = zip(*times, strict=True)
    return round(sorted(walls)[len(walls) // 2], 4), round(sorted(cpus)[len(cpus) // 2], 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=12_500)
    parser.add_argument("--gpus-per-node", type=int, default=8)
    parser.add_argument("--running", type=int, default=20_000)
    parser.add_argument("--waiting", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", choices=["mixed", "armada"], default="mixed")
    parser.add_argument("--policy", default="default")
    parser.add_argument("--json", action="store_true")
    result = measure(parser.parse_args())
    print(json.dumps(result))


if __name__ == "__main__":
    main()
