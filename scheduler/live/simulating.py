"""What if: the fleet's rows become a simulation's trace and fleet, and its figures a row's results.

The simulator never meets the portal; this joins them. Each simulation runs in a niced process of
its own, one at a time, so that the live planner and the worker's other tasks are not slowed.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from statistics import median
from typing import Any

from django.utils import timezone

from portal.actions.simulations import claim_next, note_progress, send_for_worker, settle
from portal.choices import SimulationState
from portal.models import Job, Simulation
from scheduler import planner
from scheduler.live.asking import kinds_of
from scheduler.live.cluster import LiveCluster, live_policy
from scheduler.planner import PRESETS, Policy, Snapshot, questions
from scheduler.simulator import Arrival, Fleet, Trace
from scheduler.simulator.arrivals import in_order
from scheduler.simulator.beside import Case, SimulationFailedError, simulate_beside
from scheduler.simulator.records import Record
from scheduler.simulator.report import ROWS, figures
from scheduler.simulator.traces import read_trace_lines

log = logging.getLogger(__name__)

LONGEST_S = 900.0
USUAL_S = 3600.0
"""Work of a job that has not ended and names no duration, where no other job tells one."""
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
    except (ImpossibleError, ValueError, UnicodeDecodeError) as error:
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
    trace = trace_of(simulation)
    cases = cases_of(simulation, trace)
    began = time.monotonic()
    records: list[Record] = []
    for case in cases:

        def going_on(finished: int) -> bool:
            if time.monotonic() - began > LONGEST_S:
                raise ImpossibleError(
                    f"It took longer than {LONGEST_S / 60:.0f} min; ask for less."
                )
            done = len(records) + finished / max(1, len(trace.arrivals))
            return note_progress(simulation, done / len(cases))

        found = simulate_beside(case, going_on)
        if found is None:
            return
        records.append({**found, "name": case.fleet.name})
    settle(simulation, SimulationState.DONE, share=1.0, **results_of(records, trace))


def trace_of(simulation: Simulation) -> Trace:
    """The fleet's own last days, or the file that was uploaded; raises ``ValueError``."""
    if simulation.days is None:
        with simulation.trace.open("rb") as file:
            lines = io.StringIO(file.read().decode("utf-8-sig"), newline="")
        trace = read_trace_lines(lines, name=simulation.filename or "trace")
    else:
        trace = history(simulation.days)
    if not trace.arrivals:
        why = f" ({trace.broken[0]})" if trace.broken else ""
        raise ImpossibleError(f"There is no job in {trace.name} that ran{why}.")
    return trace


def history(days: int) -> Trace:
    """The jobs that were submitted in the last days.

    What has ended needs what it worked; what has not, what it said it would, else what is usual.
    Jobs that never ran and were cancelled are left out.
    """
    rows = list(
        Job.objects.filter(submitted_at__gte=timezone.now() - timedelta(days=days))
        .select_related("tenant", "tier", "partition")
        .order_by("submitted_at", "id")
    )
    known = [row.worked_s for row in rows if row.ended and row.worked_s > 0]
    usual = median(known) if known else USUAL_S
    arrivals = [_arrival(row, usual) for row in rows if not row.ended or row.worked_s > 0]
    return in_order(f"the last {days} days", arrivals, left_out=len(rows) - len(arrivals))


def _arrival(row: Job, usual: float) -> Arrival:
    longer = max(row.worked_s, row.expected_s or usual)
    return Arrival(
        id=str(row.id),
        submitted_at=row.submitted_at.timestamp(),
        duration_s=max(1.0, row.worked_s if row.ended else longer),
        gpus=row.devices,
        replicas=row.replicas,
        fewest_gpus=row.fewest_devices,
        tenant=row.tenant.slug,
        tier=row.tier.slug,
        device_kinds=(row.device_kind,) if row.device_kind else (),
        partition=row.partition.slug if row.partition else "",
        cpus=row.cpus_per_replica * row.replicas,
        memory=row.memory_per_replica * row.replicas,
        remedy=planner.Remedy(row.remedy),
        expected_s=row.expected_s,
    )


def cases_of(simulation: Simulation, trace: Trace) -> list[Case]:
    """The fleet as it is, and beside it the changed one where something is changed."""
    seen, policy = well(LiveCluster().observe()), live_policy()
    if not seen.nodes:
        raise ImpossibleError("The fleet has no nodes yet; add one first.")
    changed = changed_by(simulation, seen)
    other = PRESETS[simulation.policy] if simulation.policy else policy
    cases = [_case(AS_IT_IS, trace, seen, policy)]
    if changed is not seen or other != policy:
        cases.append(_case(CHANGED, trace, changed, other))
    return cases


def _case(name: str, trace: Trace, seen: Snapshot, policy: Policy) -> Case:
    fleet = Fleet(name=name, nodes=seen.nodes, tenants=seen.tenants, tiers=seen.tiers)
    return Case(trace=trace, fleet=fleet, policy=replace(policy, explain=False))


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
    except KeyError as missing:
        raise ImpossibleError(f"The fleet has no {missing} now.") from None
    return changed


def results_of(records: Sequence[Record], trace: Trace) -> dict[str, Any]:
    """What a page shows of the runs: a table of measures as text, and Plotly figures."""
    table: list[list[str | None]] = []

    def add(name: str, form: str, values: Iterable[float | None]) -> None:
        table.append([name, *(None if one is None else form.format(one) for one in values)])

    for name, read, form in ROWS:
        add(name, form, (read(run["measures"]) for run in records))
    promises = [run["measures"]["promises"] for run in records]
    for tier in promises[0]:
        shares = (kept[tier]["share"] if tier in kept else None for kept in promises)
        add(f"{tier.capitalize()} promises kept", "{:.3f}", shares)
    said = f"{len(trace.arrivals):,} jobs of {trace.name}."
    if trace.broken:
        said += f" {len(trace.broken):,} lines could not be read; the first: {trace.broken[0]}."
    if trace.left_out:
        said += f" {trace.left_out:,} that never held a device are left out."
    return {
        "runs": [str(run["name"]) for run in records],
        "table": table,
        "figures": figures(records)[:4],
        "detail": said,
    }
