"""Small traces in one line: ``scene("0 10 2", "5 3 1")`` is submission, duration and devices."""

from __future__ import annotations

from typing import Any

from scheduler.simulator.arrivals import Arrival, Trace, in_order
from scheduler.simulator.fleets import Fleet
from scheduler.simulator.physics import Costs
from scheduler.simulator.simulation import Result, policy_named, simulate


def scene(*lines: str, **every: Any) -> Trace:
    """A trace; keyword arguments go to every arrival."""
    arrivals = []
    for number, line in enumerate(lines):
        submitted, duration, gpus = (float(part) for part in line.split())
        arrivals.append(
            Arrival(
                id=f"j{number}",
                submitted_at=submitted,
                duration_s=duration,
                gpus=int(gpus),
                **every,
            )
        )
    return in_order("scene", arrivals)


def play(trace: Trace, fleet: Fleet, policy: str, **options: Any) -> Result:
    """Simulate with costs off unless they are given; switches of the policy as ``switches``."""
    switches = options.pop("switches", None)
    options.setdefault("costs", Costs.off())
    return simulate(trace, fleet, policy_named(policy, switches), **options)


def ends(result: Result) -> list[float | None]:
    """When each job ended, by submission."""
    return [each.finished_at for each in result.outcomes]
