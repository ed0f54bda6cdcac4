"""Gavel's traces: tab separated, no header, work in steps.

The file gives steps and not seconds; how many steps a second a job type makes on how many devices
is measured elsewhere (``--speeds``: a CSV with ``job_type,gpus,steps_per_s``).
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.traces.rows import Row

COLUMNS = ("job_type", "command", "steps_argument", "needs_data", "steps", "arrival", "gpus")

STEPS_PER_SECOND = 10.0
"""Taken for a job type whose speed nobody gave."""

Speeds = Mapping[tuple[str, int], float]


def arrival(row: Row, speeds: Speeds) -> Arrival | None:
    """One device a scale factor; the job type becomes the model."""
    gpus, kind = row.whole("gpus"), row.text("job_type")
    if gpus == 0:
        return None
    return Arrival(
        id=str(row.number),
        submitted_at=row.amount("arrival"),
        duration_s=row.amount("steps") / speeds.get((kind, gpus), STEPS_PER_SECOND),
        gpus=gpus,
        model=kind,
    )
