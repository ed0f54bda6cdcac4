"""Tiresias' format, in seconds, and Muri's, the same in milliseconds with resource times."""

from __future__ import annotations

from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.traces.rows import Row

COLUMNS = frozenset({"job_id", "num_gpu", "submit_time", "duration", "model_name"})
MURI_COLUMNS = COLUMNS | {"iteration_time", "resource_time_0"}


def arrival(row: Row) -> Arrival | None:
    """Iterations and model are place holders in this format: only the duration counts."""
    return _arrival(row, 1.0)


def muri_arrival(row: Row) -> Arrival | None:
    """Times are milliseconds; the priority column goes to orderings that look at it."""
    return _arrival(row, 1000.0)


def _arrival(row: Row, per_second: float) -> Arrival | None:
    gpus = row.whole("num_gpu")
    if gpus == 0:
        return None
    return Arrival(
        id=row.text("job_id", str(row.number)),
        submitted_at=row.amount("submit_time") / per_second,
        duration_s=row.amount("duration") / per_second,
        gpus=gpus,
        priority=row.amount("priority", 0),
    )
