"""Shanghai AI Laboratory's Acme (clusters Seren and Kalos): one row a job."""

from __future__ import annotations

from scheduler.simulator.arrivals import GIGABYTE, Arrival
from scheduler.simulator.traces.rows import Row

COLUMNS = frozenset(
    {"job_id", "user", "node_num", "gpu_num", "cpu_num", "type", "submit_time", "duration"}
)


def arrival(row: Row) -> Arrival | None:
    """The workload type becomes the tenant; a job without GPUs or without a run is left out."""
    gpus, duration = row.whole("gpu_num"), row.amount("duration", 0)
    if gpus == 0 or duration == 0:
        return None
    nodes = max(1, row.whole("node_num", 1))
    return Arrival(
        id=row.text("job_id", str(row.number)),
        submitted_at=row.moment("submit_time"),
        duration_s=duration,
        gpus=gpus,
        tenant=row.text("type", "everyone"),
        cpus=row.amount("cpu_num", 0),
        memory=int(row.amount("mem_per_pod_GB", 0) * GIGABYTE) * nodes,
    )
