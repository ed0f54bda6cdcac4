"""A day of churn at 95 % load: how often jobs are moved, and what that costs.

``python -m tests.benchmarks.thrash --json``. Time goes in steps of a minute; a move, a resize and a
restore keep the devices of a job from working for as long as its cost says.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from dataclasses import dataclass, replace

from scheduler.planner import (
    PRESETS,
    Hold,
    Job,
    Memory,
    Node,
    Phase,
    Preempt,
    Roster,
    Snapshot,
    Tenant,
    plan,
)
from scheduler.planner.costs import move_s
from scheduler.planner.invariants import check
from scheduler.planner.needs import held_devices
from scheduler.planner.paper import after
from scheduler.planner.policy import DAY, HOUR
from tests.planner.sketches import TIERS, node

STEP = 60.0
POLICY = PRESETS["default"]
SIZES = {1: 40, 2: 18, 4: 16, 8: 16, 16: 6, 32: 3, 64: 1}


def fleet(nodes: int) -> tuple[Node, ...]:
    return tuple(
        node(f"n{index:03}", 8, rack=f"r{index // 8}", cluster=f"c{index // 32}")
        for index in range(nodes)
    )


def arrival(dice: random.Random, id_: str, now: float) -> Job:
    devices = dice.choices(tuple(SIZES), tuple(SIZES.values()))[0]
    each = min(8, devices)
    elastic = devices > 1 and dice.random() < 0.3
    if elastic:
        each = 1
    return Job(
        id=id_,
        tenant=f"t{dice.randrange(6)}",
        tier=dice.choices([tier.id for tier in TIERS], (5, 3, 2))[0],
        phase=Phase.WAITING,
        submitted_at=now,
        waiting_since=now,
        replicas=devices // each,
        gpus_per_replica=each,
        fewest_devices=max(1, devices // 4) if elastic else None,
        expected_s=min(4 * DAY, dice.lognormvariate(7.8, 1.3)),
        bytes=dice.randrange(1 << 30, 60 << 30),
        measured_at=now,
    )


@dataclass
class Tally:
    """Device-seconds of one day."""

    held: float = 0.0
    lost: float = 0.0
    possible: float = 0.0


class Day:
    """A fleet by the minute."""

    def __init__(self, nodes: int, seed: int, *, free: bool = False) -> None:
        self.free = free
        """Whether moves cost nothing: the ideal to compare with."""
        self.dice = random.Random(seed)
        self.memory = Memory()
        self.now = 0.0
        self.capacity = nodes * 8
        tenants = tuple(Tenant(id=f"t{index}") for index in range(6))
        self.snapshot = Snapshot(
            now=0.0, nodes=fleet(nodes), jobs=Roster(), tenants=tenants, tiers=TIERS
        )
        self.pause: dict[str, float] = {}
        """Seconds of its next work that a job still owes to a move."""
        self.tally = Tally()
        self.moves: Counter[str] = Counter()
        self.preempts: Counter[str] = Counter()
        self.moved_at: list[tuple[str, float]] = []
        self.count = 0
        self.rate = 0.9 * self.capacity / self._mean_work()
        """Arrivals a second; restarts and small sizes make of it a load of 95 %."""

    def _mean_work(self) -> float:
        dice = random.Random(1)
        sample = [arrival(dice, "x", 0.0) for _ in range(4000)]
        return sum(one.devices * (one.expected_s or 0.0) for one in sample) / len(sample)

    def step(self) -> None:
        self.now += STEP
        roster = self.snapshot.jobs
        assert isinstance(roster, Roster)
        changed, over = self._work(roster)
        arrivals = sum(self.dice.random() < self.rate * STEP / 20 for _ in range(20))
        for _ in range(arrivals):
            self.count += 1
            changed.append(arrival(self.dice, f"j{self.count}", self.now))
        self.snapshot = replace(self.snapshot, now=self.now, jobs=roster.changed(changed, over))
        self._cycle()

    def _work(self, roster: Roster) -> tuple[list[Job], list[str]]:
        changed, over, wanted, held = [], [], 0, 0
        for job in roster:
            wanted += job.devices
            if job.phase is not Phase.RUNNING:
                continue
            here = held_devices(job)
            held += here
            paused = min(STEP, self.pause.get(job.id, 0.0))
            if paused:
                self.pause[job.id] -= paused
            self.tally.lost += paused * here
            done = job.worked_s + (STEP - paused) * here / job.devices
            if done >= (job.expected_s or 0.0):
                over.append(job.id)
                continue
            delivered = job.delivered + (STEP - paused) * here
            due = (self.now - job.submitted_at) * job.devices
            changed.append(
                replace(job, worked_s=done, delivered=delivered, entitled=due, measured_at=self.now)
            )
        self.tally.held += held * STEP
        self.tally.possible += min(wanted, self.capacity) * STEP
        return changed, over

    def _cycle(self) -> None:
        decided = plan(self.snapshot, POLICY, self.memory)
        if self.dice.random() < 0.02:
            assert check(self.snapshot, decided, POLICY) == []
        roster = self.snapshot.jobs
        assert isinstance(roster, Roster)
        came = []
        for decision in decided:
            if isinstance(decision, Hold):
                continue
            job = roster.get(decision.job)
            assert job is not None
            if (job.phase is Phase.RUNNING or job.has_image) and not self.free:
                self.pause[job.id] = self.pause.get(job.id, 0.0) + move_s(job, POLICY)
            if isinstance(decision, Preempt):
                self.preempts[job.id] += 1
            elif job.phase is Phase.RUNNING:
                self.moves[job.id] += 1
                self.moved_at.append((job.id, self.now))
            came.append(after(job, decision, self.now))
        recent = tuple(at for _, at in self.moved_at if at > self.now - HOUR)
        self.snapshot = replace(self.snapshot, jobs=roster.changed(came), moved_at=recent)


def measure(nodes: int, hours: float, seed: int) -> dict[str, object]:
    """The day's figures. Raises AssertionError if a rule of the planner is broken."""
    day, ideal = a_day(nodes, hours, seed), a_day(nodes, hours, seed, free=True)
    tally = day.tally
    useful, best = tally.held - tally.lost, ideal.tally.held
    return {
        "benchmark": "thrash",
        "gpus": day.capacity,
        "hours": hours,
        "jobs": day.count,
        "load": round(tally.possible / day.capacity / hours / HOUR, 4),
        "moves": sum(day.moves.values()),
        "most_moves_of_a_job": max(day.moves.values(), default=0),
        "preemptions": sum(day.preempts.values()),
        "moves_within_cooling": within_cooling(day),
        "lost_to_moves": round(tally.lost / max(1.0, tally.held), 5),
        "useful_of_held": round(useful / max(1.0, tally.held), 4),
        "useful_of_ideal": round(useful / max(1.0, best), 4),
        "useful_of_possible": round(useful / max(1.0, tally.possible), 4),
    }


def a_day(nodes: int, hours: float, seed: int, *, free: bool = False) -> Day:
    """Six hours to fill the fleet, then those that count."""
    day = Day(nodes, seed, free=free)
    for _ in range(int(6 * HOUR / STEP)):
        day.step()
    day.tally, day.moved_at = Tally(), []
    day.moves.clear()
    day.preempts.clear()
    for _ in range(int(hours * HOUR / STEP)):
        day.step()
    return day


def within_cooling(day: Day) -> int:
    """How often a job was moved again before its cooling time was over."""
    last: dict[str, float] = {}
    found = 0
    for id_, at in day.moved_at:
        found += at - last.get(id_, -DAY) < POLICY.cooling_s
        last[id_] = at
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    print(json.dumps(measure(options.nodes, options.hours, options.seed)))


if __name__ == "__main__":
    main()
