"""Running a trace through the scheduler's own cycle, and what came out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from scheduler.cycle import Cluster, run_cycle
from scheduler.planner import PRESETS, Memory, Plan, Policy, Snapshot
from scheduler.planner.invariants import check
from scheduler.simulator.arrivals import Trace
from scheduler.simulator.chronicle import Chronicle, Sample
from scheduler.simulator.cluster import SimulatedCluster, Witness
from scheduler.simulator.fleets import Fleet
from scheduler.simulator.lives import Outcome
from scheduler.simulator.physics import Costs
from scheduler.simulator.splitting import Sensitivity

PROGRESS_EVERY = 200
"""Cycles between two calls of the progress callback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a simulation is."""

    finished: int
    jobs: int
    now: float
    """Seconds on the simulation's clock."""
    waiting: int

    @property
    def share(self) -> float:
        """0 to 1."""
        return self.finished / self.jobs if self.jobs else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of the machine that ran the simulation; the only part that differs between runs."""

    wall_s: float
    cpu_s: float
    """Of this process, which others on the machine do not lengthen."""
    planner_s: float
    """Wall time within the cycles: observing, planning and enacting."""
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a simulation showed."""

    trace: str
    fleet: Fleet
    policy: Policy
    costs: Costs
    seed: int
    outcomes: tuple[Outcome, ...]
    """By submission; jobs that did not finish are among them."""
    samples: tuple[Sample, ...]
    chronicle: Chronicle
    holds: Mapping[str, int]
    end_s: float
    """Seconds from the first submission to the last event."""
    stopped: bool = False
    """The progress callback asked for an end."""
    timing: Timing = field(compare=False)


class BrokenPlanError(AssertionError):
    """A plan broke one of the planner's invariants."""


class Audited:
    """A simulated cluster whose every plan is checked before it is carried out."""

    def __init__(self, cluster: SimulatedCluster, policy: Policy) -> None:
        self._cluster = cluster
        self._policy = policy
        self._seen: Snapshot | None = None

    def observe(self) -> Snapshot:
        """What the cluster shows."""
        self._seen = self._cluster.observe()
        return self._seen

    def enact(self, plan: Plan) -> None:
        """Check, then let the cluster act; raises ``BrokenPlanError``."""
        assert self._seen is not None
        if broken := check(self._seen, plan, self._policy):
            raise BrokenPlanError(f"at {self._seen.now:g} s: {'; '.join(broken)}")
        self._cluster.enact(plan)
        self._cluster.floor.occupancy.check()


class UnknownPolicyError(ValueError):
    """A preset or a switch that does not exist, or a value it cannot take."""


def simulate(
    trace: Trace,
    fleet: Fleet,
    policy: Policy,
    *,
    costs: Costs | None = None,
    seed: int = 0,
    progress: Callable[[Progress], bool | None] | None = None,
    witness: Witness | None = None,
    sensitivity: Sensitivity | None = None,
    audit: bool = False,
    reasons: bool = False,
) -> Result:
    """Play a trace on a fleet under a policy.

    ``progress`` is called now and then; when it returns ``False`` the simulation stops early.
    ``witness`` is told each decision that changes something. With ``audit`` every plan is held
    against the planner's invariants, and the first that breaks one raises ``BrokenPlanError``.
    ``reasons`` counts why jobs waited, which takes time as each of them is answered each time. The
    same arguments give the same result but for ``Result.timing``.
    """
    costs = costs if costs is not None else Costs()
    policy = replace(policy, explain=reasons)
    cluster = SimulatedCluster(
        trace.arrivals,
        fleet,
        policy,
        costs=costs,
        seed=seed,
        witness=witness,
        sensitivity=sensitivity,
    )
    acting = Audited(cluster, policy) if audit else cluster
    jobs = len(trace.arrivals)
    timing, stopped = _play(
        cluster, acting, policy, progress and (lambda: progress(_progress(cluster, jobs)))
    )
    return Result(
        trace=trace.name,
        fleet=fleet,
        policy=policy,
        costs=costs,
        seed=seed,
        outcomes=tuple(life.outcome(cluster.start) for life in cluster.floor.lives),
        samples=tuple(cluster.chronicle.samples),
        chronicle=cluster.chronicle,
        holds=dict(sorted(cluster.holds.items())),
        end_s=cluster.clock.now - cluster.start,
        stopped=stopped,
        timing=timing,
    )


def _play(
    cluster: SimulatedCluster,
    acting: Cluster,
    policy: Policy,
    tell: Callable[[], bool | None] | None,
) -> tuple[Timing, bool]:
    """Run cycle after cycle until nothing will change or ``tell`` says to stop."""
    memory = Memory()
    began, began_cpu = time.perf_counter(), time.process_time()
    planner_s, cycles, stopped = 0.0, 0, False
    while not stopped and cluster.advance():
        before = time.perf_counter()
        run_cycle(acting, policy, memory)
        planner_s += time.perf_counter() - before
        cycles += 1
        if tell is not None and cycles % PROGRESS_EVERY == 0:
            stopped = tell() is False
    if tell is not None and not stopped:
        tell()
    timing = Timing(
        wall_s=time.perf_counter() - began,
        cpu_s=time.process_time() - began_cpu,
        planner_s=planner_s,
        cycles=cycles,
    )
    return timing, stopped


def policy_named(name: str, switches: Mapping[str, str] | None = None) -> Policy:
    """A preset with some of its switches set from text (``migration=off``, ``cooling_s=60``)."""
    if name not in PRESETS:
        raise UnknownPolicyError(f"{name!r} is no policy; there are: {', '.join(sorted(PRESETS))}")
    policy = PRESETS[name]
    known = {each.name: getattr(policy, each.name) for each in fields(Policy)}
    changes: dict[str, Any] = {}
    for key, text in (switches or {}).items():
        if key not in known or key == "name":
            raise UnknownPolicyError(f"{key!r} is no switch; there are: {', '.join(sorted(known))}")
        changes[key] = _value(key, text, known[key])
    if changes:
        changes["name"] = " ".join([name, *(f"{k}={v}" for k, v in (switches or {}).items())])
    return replace(policy, **changes)


def _value(key: str, text: str, present: object) -> object:
    try:
        if isinstance(present, bool):
            return {"on": True, "true": True, "off": False, "false": False}[text.lower()]
        if isinstance(present, tuple):
            return tuple(float(part) for part in text.split(":"))
        if isinstance(present, StrEnum | int | float):
            return type(present)(text)
    except (KeyError, ValueError):
        pass
    raise UnknownPolicyError(f"{key} cannot be {text!r}; at present it is {present!r}")


def _progress(cluster: SimulatedCluster, jobs: int) -> Progress:
    return Progress(
        finished=cluster.floor.finished,
        jobs=jobs,
        now=cluster.clock.now - cluster.start,
        waiting=cluster.floor.waiting,
    )
