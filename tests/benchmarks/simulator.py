"""How fast the simulator is, and the five exact figures of ee9e8c.

``python -m tests.benchmarks.simulator --json [--quick]``, one JSON object a line. Jobs per second
are per second of this process's CPU, so that a busy machine does not matter; wall seconds stand
beside.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from scheduler.simulator import (
    Costs,
    Fleet,
    Trace,
    fleet_named,
    measure,
    policy_named,
    read_trace,
    simulate,
)
from scheduler.simulator.synthetic import dressed
from tests.benchmarks.published import figure, peak_mb, traces

EXACT = {
    "pool-fifo": (610_080.4, 0),
    "pool-fifo-backfill": (331_850.5, 0),
    "pool-sjf": (197_264.3, 0),
    "pool-srtf": (156_771.4, 930),
    "pool-srsf": (154_145.3, 723),
}
"""Mean completion in seconds and preemptions, on which three independent programs agree."""

TIERS = {"premium": 0.2, "standard": 0.3, "basic": 0.5}


def exact(trace: Trace) -> None:
    """The idealised rules on one counted pool of 128."""
    for name, (mean, preemptions) in EXACT.items():
        result = simulate(
            trace,
            fleet_named("pool:128"),
            policy_named(name, {"explain": "off"}),
            costs=Costs.off(),
        )
        measures = measure(result)
        found = round(measures["completion_s"]["mean"], 1)  # type: ignore[index]
        moved = measures["moves"]["preemptions"]  # type: ignore[index]
        figure(
            figure="exact",
            policy=name,
            mean_jct_s=found,
            preemptions=moved,
            agrees=(found, moved) == (mean, preemptions),
            jobs_per_s=round(len(trace.arrivals) / result.timing.cpu_s),
        )


def speed(trace: Trace, fleet: Fleet, policy: str, costs: Costs) -> None:
    """One run, timed."""
    chosen = replace(policy_named(policy), explain=False)
    result = simulate(trace, fleet, chosen, costs=costs)
    timing = result.timing
    figure(
        figure="speed",
        trace=trace.name,
        jobs=len(trace.arrivals),
        fleet=fleet.name,
        policy=policy,
        jobs_per_s=round(len(trace.arrivals) / timing.cpu_s),
        cpu_s=round(timing.cpu_s, 2),
        wall_s=round(timing.wall_s, 2),
        cycles=timing.cycles,
        peak_mb=round(peak_mb()),
        finished=sum(each.finished_at is not None for each in result.outcomes),
    )


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line (always so)")
    parser.add_argument("--quick", action="store_true", help="10,000 jobs of Philly, not all")
    options = parser.parse_args()
    small = read_trace(traces() / "tiresias" / "ee9e8c.csv")
    philly = read_trace(traces() / "philly" / "philly.csv")
    exact(small)
    lengths = (10_000,) if options.quick else (10_000, 40_000, len(philly.arrivals))
    speed(small, fleet_named("16x8"), "fifo", Costs.off())
    speed(dressed(small, seed=1, tiers=TIERS, elastic=0.5), fleet_named("16x8"), "default", Costs())
    for fleet in ("pool:512", "pool:2490"):
        for length in lengths:
            speed(philly.first(length), fleet_named(fleet), "pool-fifo", Costs.off())
    for fleet in ("64x8", "312x8"):
        for length in lengths:
            speed(philly.first(length), fleet_named(fleet), "fifo", Costs.off())
            speed(philly.first(length), fleet_named(fleet), "default", Costs())


if __name__ == "__main__":
    main()
