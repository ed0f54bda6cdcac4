"""The measures of a simulation: completion, waiting, use, promises, moves, fairness."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from scheduler.simulator.fleets import describe
from scheduler.simulator.lives import Outcome
from scheduler.simulator.simulation import Result

SIZES = ((1, "1"), (2, "2"), (4, "3-4"), (8, "5-8"), (16, "9-16"), (64, "17-64"))


def measure(result: Result) -> dict[str, object]:
    """All measures as plain numbers, seconds and shares; stable from run to run."""
    done = [each for each in result.outcomes if each.finished_at is not None]
    chronicle = result.chronicle
    capacity = chronicle.capacity
    return {
        "trace": result.trace,
        "policy": result.policy.name,
        "fleet": dict(describe(result.fleet)),
        "seed": result.seed,
        "stopped": result.stopped,
        "jobs": len(result.outcomes),
        "finished": len(done),
        "makespan_s": max((each.finished_at or 0.0 for each in done), default=0.0),
        "completion_s": spread([each.completion_s for each in done]),
        "wait_s": spread([each.wait_s for each in done]),
        "allocation": _share(chronicle.used, capacity),
        "utilisation": _share(chronicle.computing, capacity),
        "utilisation_loaded": _share(*chronicle.loaded),
        "fragmentation": _share(chronicle.idle_in_part, capacity),
        "blocked": _share(chronicle.blocked, capacity),
        "moves": _moves(result.outcomes, chronicle.used),
        "promises": _promises(result, done),
        "fairness": _fairness(done),
        "by_size": groups(done, size_of),
        "by_tenant": groups(done, lambda each: each.tenant),
        "by_tier": groups(done, lambda each: each.tier),
        "holds": dict(result.holds),
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean, median and the high percentiles; empty when there is nothing to measure."""
    if not values:
        return {}
    ordered = sorted(values)
    return {
        "mean": math.fsum(ordered) / len(ordered),
        "p50": percentile(ordered, 0.50),
        "p95": percentile(ordered, 0.95),
        "p99": percentile(ordered, 0.99),
        "max": ordered[-1],
    }


def percentile(ordered: Sequence[float], part: float) -> float:
    """The value below which this part of the sorted values lies, between neighbours linearly."""
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 when all are equal, 1/n when one has everything."""
    squares = math.fsum(value * value for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else 1.0


def size_of(outcome: Outcome) -> str:
    """The size class of a job, by its devices."""
    return next((name for most, name in SIZES if outcome.gpus <= most), "65 and more")


def groups(
    done: Iterable[Outcome], of: Callable[[Outcome], str]
) -> dict[str, Mapping[str, object]]:
    """Completion and waiting by group, in the order of the groups' names."""
    found: dict[str, list[Outcome]] = {}
    for each in done:
        found.setdefault(of(each), []).append(each)
    return {
        name: {
            "jobs": len(members),
            "completion_s": spread([each.completion_s for each in members]),
            "wait_s": spread([each.wait_s for each in members]),
            "fraction": math.fsum(each.fraction for each in members) / len(members),
        }
        for name, members in sorted(found.items())
    }


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _moves(outcomes: Sequence[Outcome], used: float) -> dict[str, float]:
    spent = math.fsum(each.moving_s * each.gpus for each in outcomes)
    lost = math.fsum(each.lost_s * each.gpus for each in outcomes)
    return {
        "preemptions": sum(each.preemptions for each in outcomes),
        "migrations": sum(each.migrations for each in outcomes),
        "resizes": sum(each.resizes for each in outcomes),
        "moving_device_s": spent,
        "lost_device_s": lost,
        "cost_share": _share(spent + lost, used),
    }


def _promises(result: Result, done: Sequence[Outcome]) -> dict[str, Mapping[str, float]]:
    """For each tier that promises something: how many of its jobs got it."""
    kept: dict[str, Mapping[str, float]] = {}
    for tier in result.fleet.tiers:
        members = [each for each in done if each.tier == tier.id]
        if tier.promise and members:
            fulfilled = sum(each.fraction >= tier.promise for each in members)
            kept[str(tier.id)] = {
                "promise": tier.promise,
                "jobs": len(members),
                "kept": fulfilled,
                "share": fulfilled / len(members),
            }
    return kept


def _fairness(done: Sequence[Outcome]) -> dict[str, object]:
    by_tenant: dict[str, list[float]] = {}
    for each in done:
        by_tenant.setdefault(each.tenant, []).append(each.fraction)
    fractions = [math.fsum(each) / len(each) for _, each in sorted(by_tenant.items())]
    return {
        "finish_time": spread([each.unfairness for each in done]),
        "jain_of_tenants": jain(fractions) if fractions else 1.0,
    }
