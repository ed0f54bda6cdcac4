"""What if: the fleet's rows become a simulation's trace and fleet, and its figures a row's results.

The simulator never meets the portal; this joins them. Each simulation runs in a niced process of
its own, one at a time, so that the live planner and the worker's other tasks are not slowed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from django.conf import settings

from portal.actions.playing import claim_next, note_progress, send_for_worker, settle
from portal.choices import Pricing, SimulationState
from portal.drawings.figures import count
from portal.models import Simulation
from scheduler import planner
from scheduler.live.asking import kinds_of
from scheduler.live.cluster import LiveCluster, live_policy
from scheduler.live.history import Learned, history, learned_costs, measured_of
from scheduler.planner import PRESETS, Policy, Snapshot, questions
from scheduler.planner.sensitivity import Matrix
from scheduler.simulator import Costs, Fleet, Trace
from scheduler.simulator.beside import (
    Case,
    Play,
    Played,
    RefusedError,
    SimulationFailedError,
    play_beside,
)
from scheduler.simulator.fleets import Links
from scheduler.simulator.report import ROWS, figures
from scheduler.simulator.splitting import Sensitivity

log = logging.getLogger(__name__)

UNLIMITED = Links(rack=float("inf"), cluster=float("inf"), region=float("inf"), world=float("inf"))
AS_IT_IS = "as it is"
CHANGED = "changed"


class ImpossibleError(ValueError):
    """A question that cannot be played; the sentence says why."""


def run_next() -> None:
    """Play the next simulation that waits, if none runs."""
    simulation = claim_next()
    if simulation is None:
        return
    try:
        _play(simulation)
    except (ImpossibleError, RefusedError) as error:
        settle(simulation, SimulationState.FAILED, detail=str(error))
    except SimulationFailedError as error:
        log.error("simulation %s failed: %s", simulation.id, error)
        settle(simulation, SimulationState.FAILED, detail=f"The simulator failed: {error}")
    except Exception:
        log.exception("simulation %s failed", simulation.id)
        settle(simulation, SimulationState.FAILED, detail="It failed; the worker's log says why.")
    if Simulation.objects.filter(state=SimulationState.QUEUED).exists():
        send_for_worker()


def _play(simulation: Simulation) -> None:
    priced = pricing_of(simulation)
    trace = _trace_of(simulation)
    # Of a file's jobs nothing was measured.
    measured = {} if isinstance(trace, Path) else measured_of(trace)
    play = Play(
        trace=trace,
        name=simulation.filename,
        strict=simulation.strict,
        cases=tuple(cases_of(simulation, priced.costs, measured)),
        most_bytes=settings.SIMULATION_MEMORY,
    )
    began = time.monotonic()

    def going_on(share: float) -> bool:
        if time.monotonic() - began > settings.SIMULATION_LIMIT:
            most = settings.SIMULATION_LIMIT / 60
            raise ImpossibleError(f"It took longer than {most:.0f} min; ask for less.")
        return note_progress(simulation, share)

    played = play_beside(play, going_on)
    if played is None:
        return
    for found, case in zip(played.records, play.cases, strict=True):
        found["name"] = case.fleet.name
    results = results_of(played)
    if not isinstance(trace, Path) and any(case.sensitivity for case in play.cases):
        known = sum(arrival.model in measured for arrival in trace.arrivals)
        results["detail"] += f" What CPUs are worth was measured of {count(known, 'job')}."
    settle(simulation, SimulationState.DONE, share=1.0, costs=priced.told(), **results)


def _trace_of(simulation: Simulation) -> Trace | Path:
    """The fleet's own last days, or the file that was uploaded."""
    if simulation.days is not None:
        return history(simulation.days)
    if not simulation.trace:
        raise ImpossibleError("Its trace was removed meanwhile; upload it again.")
    return Path(simulation.trace.path)


def pricing_of(simulation: Simulation) -> Learned:
    """What moves cost in it: as was learned here for own days, the defaults for a trace."""
    usual = Pricing.DEFAULT if simulation.days is None else Pricing.LEARNED
    match simulation.pricing or usual:
        case Pricing.LEARNED:
            return learned_costs()
        case Pricing.OFF:
            return Learned(Costs.off(), 0)
        case _:
            return Learned(Costs(), 0)


def cases_of(
    simulation: Simulation, costs: Costs, measured: Mapping[str, Matrix] = MappingProxyType({})
) -> list[Case]:
    """The fleet as it is, and beside it the changed one where something is changed."""
    seen, policy = well(LiveCluster().observe()), live_policy()
    if not seen.nodes:
        raise ImpossibleError("The fleet has no nodes yet; add one first.")
    changed = changed_by(simulation, seen)
    other = policy
    if simulation.policy:
        other = replace(PRESETS[simulation.policy], sharing=policy.sharing)
    if simulation.sharing:
        other = replace(other, sharing=planner.Sharing(simulation.sharing))
    cases = [_case(AS_IT_IS, seen, policy, costs, measured)]
    if changed != seen or other != policy:
        cases.append(_case(CHANGED, changed, other, costs, measured))
    return cases


def _case(
    name: str, seen: Snapshot, policy: Policy, costs: Costs, measured: Mapping[str, Matrix]
) -> Case:
    fleet = Fleet(
        name=name,
        nodes=seen.nodes,
        tenants=seen.tenants,
        tiers=seen.tiers,
        links=UNLIMITED if costs != Costs() else Links(),
    )
    sensitivity = None
    # Without anything measured, sharing gives every job its devices' part: nothing to reckon.
    if policy.sharing is planner.Sharing.TUNE and measured:
        sensitivity = Sensitivity(matrices=dict(measured), least_share=policy.least_share)
    return Case(
        fleet=fleet, policy=replace(policy, explain=False), costs=costs, sensitivity=sensitivity
    )


def well(snapshot: Snapshot) -> Snapshot:
    """The fleet with every node there and open, and nobody's use remembered."""
    nodes = tuple(
        replace(
            node, cordoned=False, draining=False, lost=False,
            devices=tuple(replace(device, sick=False) for device in node.devices),
        )
        for node in snapshot.nodes
    )  # fmt: skip
    tenants = tuple(replace(tenant, usage=0.0) for tenant in snapshot.tenants)
    return replace(snapshot, nodes=nodes, tenants=tenants, jobs=())


def changed_by(simulation: Simulation, snapshot: Snapshot) -> Snapshot:
    """The snapshot with the quota and the nodes that are asked about."""
    changed = snapshot
    try:
        if asked := simulation.quota:
            quota = planner.Quota(
                reserved=asked["reserved"], borrow=asked["borrow"], lend=asked["lend"]
            )
            for kind in kinds_of(snapshot, asked["tenant"], asked["device_kind"]):
                tenant = planner.TenantId(asked["tenant"])
                changed = questions.with_quota(changed, tenant, kind, quota)
        if simulation.more_nodes:
            like = planner.NodeId(simulation.like_node)
            changed = questions.with_nodes(changed, like, simulation.more_nodes)
        for slug, told in simulation.tiers.items():
            changed = _with_tier(changed, slug, told)
    except KeyError as missing:
        raise ImpossibleError(f"The fleet has no {missing} now.") from None
    return changed


def _with_tier(snapshot: Snapshot, slug: str, told: Mapping[str, Any]) -> Snapshot:
    """The snapshot with another rank, promise or preemptibility of a tier."""
    if all(tier.id != slug for tier in snapshot.tiers):
        raise KeyError(slug)
    tiers = (replace(tier, **told) if tier.id == slug else tier for tier in snapshot.tiers)
    return replace(snapshot, tiers=tuple(tiers))


def results_of(played: Played) -> dict[str, Any]:
    """What a page shows of the runs: a table of measures as text, and Plotly figures."""
    records = played.records
    table: list[list[str | None]] = []

    def add(name: str, form: str, values: Iterable[float | None]) -> None:
        table.append([name, *(None if one is None else form.format(one) for one in values)])

    for name, read, form in ROWS:
        add(name, form, (read(run["measures"]) for run in records))
    promises = [run["measures"]["promises"] for run in records]
    for tier in dict.fromkeys(tier for kept in promises for tier in kept):
        shares = (100 * kept[tier]["share"] if tier in kept else None for kept in promises)
        add(f"{tier.capitalize()} promises kept, %", "{:.1f}", shares)
    return {
        "runs": [str(run["name"]) for run in records],
        "table": table,
        "measures": [run["measures"] for run in records],
        "figures": figures(records)[:4],
        "detail": _said(played),
        "broken": played.broken,
    }


def _said(played: Played) -> str:
    """What was played, and what of the trace was not."""
    said = f"{count(played.jobs, 'job')} of {played.name}."
    if played.broken_count:
        said += f" {count(played.broken_count, 'line')} could not be read: left out."
    if played.left_out:
        said += f" Left out: {played.left_out:,} that never held a device."
    if played.unused:
        said += f" Columns that mean nothing here: {', '.join(played.unused[:10])}."
    return said
