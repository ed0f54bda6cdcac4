"""Synergy's replay traces: no header, work in iterations of a named model.

How long an iteration takes comes from the profiles (``--sensitivity``), whose time is the one at
the GPU-proportional share; a model that is not profiled makes an iteration a second.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.traces.rows import Row

COLUMNS = ("job_id", "model", "arrival", "iterations", "gpus")


def arrival(row: Row, iteration_s: Mapping[str, float]) -> Arrival | None:
    """The duration is the one at the GPU-proportional share."""
    gpus, model = row.whole("gpus"), row.text("model")
    if gpus == 0:
        return None
    return Arrival(
        id=row.text("job_id", str(row.number)),
        submitted_at=row.amount("arrival"),
        duration_s=row.whole("iterations") * iteration_s.get(model, 1.0),
        gpus=gpus,
        model=model,
    )
