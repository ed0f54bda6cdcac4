"""The simulator: traces and a clock around the very cycle that runs the live fleet."""

from scheduler.simulator.arrivals import Arrival, Trace
from scheduler.simulator.fleet_file import fleet_named, read_fleet
from scheduler.simulator.fleets import Fleet, grid, pool
from scheduler.simulator.measures import measure
from scheduler.simulator.physics import Costs
from scheduler.simulator.simulation import Progress, Result, policy_named, simulate
from scheduler.simulator.traces import read_trace

__all__ = [
    "Arrival",
    "Costs",
    "Fleet",
    "Progress",
    "Result",
    "Trace",
    "fleet_named",
    "grid",
    "measure",
    "policy_named",
    "pool",
    "read_fleet",
    "read_trace",
    "simulate",
]
