"""How rows are named in the planner's words, and back."""

from __future__ import annotations

from scheduler.planner import DeviceId, JobId


def job_id(id: int) -> JobId:
    return JobId(str(id))


def job_row(id: JobId) -> int:
    return int(id)


def device_id(node: str, uid: str) -> DeviceId:
    """A device's name in the whole fleet."""
    return DeviceId(f"{node}/{uid}")


def device_row(id: DeviceId) -> str:
    """The device's id on its node."""
    return id.partition("/")[2]
