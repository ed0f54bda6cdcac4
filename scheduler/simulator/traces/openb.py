"""Alibaba's production trace of 2023: pods that take a part of a device, one, or several."""

from __future__ import annotations

from scheduler.planner import Remedy
from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.traces.rows import Row

COLUMNS = frozenset({"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"})

TIERS = {"LS": "premium", "Guaranteed": "premium", "Burstable": "standard", "BE": "basic"}
"""Quality of service there, service tier here."""


def arrival(row: Row) -> Arrival:
    """A pod without a device keeps ``gpus`` 0; lists without times arrive one second apart."""
    gpus = row.whole("num_gpu")
    timed = "creation_time" in row.cells
    created = row.amount("creation_time") if timed else float(row.number)
    started = row.amount("scheduled_time", created) if timed else created
    ended = row.amount("deletion_time", started) if timed else created + 1
    if ended < started:
        raise ValueError(f"deletion_time {ended:g} lies before scheduled_time {started:g}")
    return Arrival(
        id=row.text("name", str(row.number)),
        submitted_at=created,
        duration_s=ended - started,
        gpus=gpus,
        share=row.amount("gpu_milli", 1000) / 1000 if gpus == 1 else 1.0,
        tenant=row.text("qos", "everyone"),
        tier=TIERS.get(row.text("qos"), ""),
        device_kinds=tuple(sorted(set(row.text("gpu_spec").split("|")) - {""})),
        cpus=row.amount("cpu_milli", 0) / 1000,
        memory=row.whole("memory_mib", 0) * 2**20,
        remedy=Remedy.TRANSPARENT,
    )
