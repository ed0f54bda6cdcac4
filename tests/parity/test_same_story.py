"""One trace through the simulator and through the live shell: the same decisions, to the device.

The live side is the real one but for the agents: rows, actions, observing, enacting, cycles. Its
jobs end when this test's own books say that their work is done.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from portal.models import Decision, Job, Move, Node, PlacedReplica, Quota
from scheduler.live.cluster import LiveCluster
from scheduler.planner import PRESETS
from scheduler.planner import Decision as Decided
from scheduler.simulator import Arrival, Costs, Fleet, Trace, simulate
from scheduler.simulator.arrivals import in_order
from tests.live.puppets import Town
from tests.parity.conftest import Clock

Told = tuple[float, str, int, str, tuple[str, ...]]
"""Moment, what, which job by its row in the trace, why, and its devices rank by rank."""

POLICY = replace(PRESETS["eager"], patience_s=float("inf"), move_s=0.0)
"""Ours with moves for nothing, but for what looks at the clock: the worlds ask such a policy again
at moments of their own."""
NODES = {"n1": 4, "n2": 4, "n3": 2}
TIERS = ("basic", "standard", "premium")


def trace_of(seed: int, jobs: int = 12) -> Trace:
    """A busy day in small: three tiers, gangs, some elastic; no two events at one moment."""
    die = random.Random(seed)
    at, arrivals = 0.0, []
    for number in range(jobs):
        at += die.choice((7, 31, 67, 131))
        gpus = die.choice((1, 1, 2, 2, 4, 6))
        arrivals.append(
            Arrival(
                id=str(number),
                submitted_at=at + number / 64,
                duration_s=die.choice((90, 240, 500)) + number / 4096,
                gpus=gpus,
                replicas=gpus,
                fewest_gpus=gpus // 2 if gpus > 1 and die.random() < 0.5 else None,
                tenant="vision",
                tier=die.choice(TIERS),
            )
        )
    return in_order(f"seed {seed}", arrivals)


def simulated(trace: Trace, fleet: Fleet) -> list[Told]:
    told: list[Told] = []

    def witness(at: float, decision: Decided) -> None:
        devices = tuple("+".join(seat.devices) for seat in getattr(decision, "seats", ()))
        what, why = type(decision).__name__.lower(), decision.why.reason.value
        told.append((round(at, 3), what, int(decision.job), why, devices))

    result = simulate(trace, fleet, POLICY, costs=Costs.off(), witness=witness)
    assert all(each.finished_at is not None for each in result.outcomes)
    return sorted(told)


class Shell:
    """Plays a trace in a town: submits, lets time pass, ends what is done, notes decisions."""

    def __init__(self, town: Town, clock: Clock, trace: Trace) -> None:
        self.town, self.clock, self.trace = town, clock, trace
        self.start = trace.arrivals[0].submitted_at
        self.jobs: list[Job] = []
        self.left: dict[int, float] = {}
        """Job -> seconds of work that it has yet to do at full size."""
        self.told: list[Told] = []

    def play(self) -> list[Told]:
        coming = list(self.trace.arrivals)
        while coming or self.left:
            paces = self.paces()
            ends = {job: self.clock.passed + self.left[job] / paces[job] for job in paces}
            arrival = coming[0].submitted_at - self.start if coming else float("inf")
            at = min([arrival, *ends.values()])
            for job, pace in paces.items():
                self.left[job] -= pace * (at - self.clock.passed)
            self.clock.passed = at
            if arrival <= at:
                self.submit(coming.pop(0))
            else:
                self.end(min(ends, key=lambda job: ends[job]))
            self.town.rest(policy=POLICY)
            self.note()
        return sorted(self.told)

    def paces(self) -> dict[int, float]:
        """Work a second of each job that runs."""
        active = PlacedReplica.objects.filter(placement__state="active", state="running")
        held: dict[int, set[tuple[int, str]]] = {}
        for job, node, devices in active.values_list("placement__job", "node", "devices"):
            held.setdefault(job, set()).update((node, uid) for uid in devices)
        full = {job.id: job.devices for job in self.jobs}
        return {job: len(held[job]) / full[job] for job in held if job in self.left}

    def submit(self, arrival: Arrival) -> None:
        job = self.town.submit(
            arrival.tier,
            replicas=arrival.gpus,
            fewest_devices=arrival.fewest_gpus,
            expected_s=arrival.duration_s,
        )
        self.jobs.append(job)
        self.left[job.id] = arrival.duration_s

    def end(self, job: int) -> None:
        del self.left[job]
        for puppet in self.town.puppets.values():
            puppet.ends[job] = 0
            puppet.step()

    def note(self) -> None:
        """Tell what was decided since, by the placements that came of it."""
        Move.objects.update(phases={})  # what the planner learns moves cost: nothing, as simulated
        numbers = {job.id: number for number, job in enumerate(self.jobs)}
        moment = round(self.clock.passed, 3)
        for row in Decision.objects.exclude(kind="hold").filter(at=self.clock()):
            self.told.append((moment, row.kind, numbers[row.job_id], row.reason, devices_of(row)))


def devices_of(row: Decision) -> tuple[str, ...]:
    """The devices that a decision's placement names, rank by rank; none for a preemption."""
    if row.kind == "preempt":
        return ()
    placement = row.job.placements.filter(created_at=row.at).order_by("epoch").last()
    assert placement is not None
    seats: Iterable[PlacedReplica] = placement.replicas.select_related("node").order_by("rank")
    return tuple("+".join(f"{seat.node.name}/{uid}" for uid in seat.devices) for seat in seats)


def lay_out(town: Town) -> Fleet:
    """Nodes and a wide quota; the simulator's fleet is what the live cluster observes of them."""
    Quota.objects.update(reserved=64, borrow=None)
    for name, devices in NODES.items():
        town.node(name, devices)
    Node.objects.update(memory=2**44)
    seen = LiveCluster(town.now).observe()
    return Fleet(name="town", nodes=seen.nodes, tenants=seen.tenants, tiers=seen.tiers)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 3])
def test_both_worlds_decide_the_same(town: Town, clock: Clock, seed: int) -> None:
    fleet, trace = lay_out(town), trace_of(seed)
    expected = simulated(trace, fleet)
    assert {what for _, what, *_ in expected} >= {"place", "preempt", "resize"}
    assert Shell(town, clock, trace).play() == expected
    assert set(Job.objects.values_list("state", flat=True)) == {"succeeded"}
