"""Our own CSV: three columns are enough, the others are for those who know more.

``docs/simulator.md`` explains each column.
"""

from __future__ import annotations

from scheduler.planner import Remedy
from scheduler.simulator.arrivals import GIGABYTE, Arrival
from scheduler.simulator.traces.rows import Row

COLUMNS = frozenset({"submit_time", "duration", "gpus"})
OPTIONAL = frozenset(
    {"job_id", "replicas", "fewest_gpus", "gpu_share", "tenant", "tier", "device_kinds"}
    | {"partition", "cpus", "memory_gb", "image_gb", "remedy", "expected_s", "priority", "model"}
)


def arrival(row: Row) -> Arrival | None:
    """Read one line; raises ``ValueError`` for a value that no job can have."""
    gpus = row.whole("gpus")
    if gpus == 0:
        return None
    share = row.amount("gpu_share", 1.0)
    if not 0 < share <= 1 or (share < 1 and gpus != 1):
        raise ValueError("gpu_share lies between 0 and 1, and below 1 only when gpus is 1")
    replicas = row.whole("replicas", 0) or None
    if replicas and gpus % replicas:
        raise ValueError(f"{gpus} gpus cannot be split evenly over {replicas} replicas")
    fewest = row.whole("fewest_gpus", 0) or None
    if fewest and fewest > gpus:
        raise ValueError(f"fewest_gpus {fewest} is more than gpus {gpus}")
    return Arrival(
        id=row.text("job_id", str(row.number)),
        submitted_at=row.moment("submit_time"),
        duration_s=row.amount("duration"),
        gpus=gpus,
        share=share,
        replicas=replicas,
        fewest_gpus=fewest,
        tenant=row.text("tenant", "everyone"),
        tier=row.text("tier"),
        device_kinds=tuple(sorted(set(row.text("device_kinds").split("|")) - {""})),
        partition=row.text("partition"),
        cpus=row.amount("cpus", 0),
        memory=int(row.amount("memory_gb", 0) * GIGABYTE),
        image=int(row.amount("image_gb") * GIGABYTE) if row.text("image_gb") else None,
        remedy=_remedy(row.text("remedy", Remedy.TRANSPARENT)),
        expected_s=row.amount("expected_s") if row.text("expected_s") else None,
        priority=row.amount("priority", 0),
        model=row.text("model"),
    )


def unused(header: str) -> tuple[str, ...]:
    """The columns of a header that mean nothing here."""
    names = [cell.strip().lower() for cell in header.split(",")]
    return tuple(name for name in names if name and name not in COLUMNS | OPTIONAL)


def _remedy(name: str) -> Remedy:
    try:
        return Remedy(name)
    except ValueError:
        raise ValueError(f"remedy is one of {', '.join(Remedy)}, not {name!r}") from None
