"""SenseTime Helios, the house format of AnalySIM: one row a job, GPU jobs and CPU jobs."""

from __future__ import annotations

from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.traces.rows import Row

COLUMNS = frozenset(
    {"job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "submit_time", "duration", "queue"}
)


def arrival(row: Row) -> Arrival | None:
    """A job that held no GPU, or never ran, is left out; its virtual cluster is the tenant."""
    gpus, duration = row.whole("gpu_num"), row.amount("duration", 0)
    if gpus == 0 or duration == 0:
        return None
    return Arrival(
        id=row.text("job_id", str(row.number)),
        submitted_at=row.moment("submit_time"),
        duration_s=duration,
        gpus=gpus,
        tenant=row.text("vc", "everyone"),
        cpus=row.amount("cpu_num", 0),
    )
