"""A simulation in its own process shows the same, can be called off, and says why it failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.planner import PRESETS
from scheduler.simulator.beside import Case, SimulationFailedError, simulate_beside
from scheduler.simulator.fleets import grid
from scheduler.simulator.records import record
from scheduler.simulator.simulation import simulate
from scheduler.simulator.synthetic import recipe_named, synthetic
from tests.simulator.scenes import scene

pytestmark = pytest.mark.slow


def test_it_shows_what_a_simulation_in_this_process_shows() -> None:
    case = Case(trace=scene("0 10 2", "5 3 1", "6 9 4"), fleet=grid(2, 2), policy=PRESETS["fifo"])
    heard: list[int] = []

    def going_on(finished: int) -> bool:
        heard.append(finished)
        return True

    found = simulate_beside(case, going_on)
    assert found == record(simulate(case.trace, case.fleet, case.policy))
    assert found["measures"]["finished"] == 3
    assert heard


def test_it_ends_when_it_is_called_off() -> None:
    trace = synthetic(recipe_named("poisson,jobs=60000,load=0.9,devices=64"), seed=1)
    case = Case(trace=trace, fleet=grid(16, 4), policy=PRESETS["default"])
    assert simulate_beside(case, lambda finished: False) is None


def test_it_says_why_it_failed() -> None:
    trace = scene("0 10 2")
    broken = replace(trace, arrivals=(replace(trace.arrivals[0], gpus=0, replicas=0),))
    case = Case(trace=broken, fleet=grid(1, 2), policy=PRESETS["default"])
    with pytest.raises(SimulationFailedError, match="Error"):
        simulate_beside(case, lambda finished: True)
