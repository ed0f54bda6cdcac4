"""Microsoft Philly, as the Pollux and Sia artifacts wrote it: one row a GPU job."""

from __future__ import annotations

from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.traces.rows import Row

COLUMNS = frozenset({"timestamp", "duration", "num_gpus", "gpu_time", "cluster"})


def arrival(row: Row) -> Arrival | None:
    """The virtual cluster becomes the tenant; the time stamp is local wall time, read as UTC."""
    gpus = row.whole("num_gpus")
    if gpus == 0:
        return None
    return Arrival(
        id=str(row.number),
        submitted_at=row.moment("timestamp"),
        duration_s=row.amount("duration"),
        gpus=gpus,
        tenant=row.text("cluster", "everyone"),
    )
