"""When a running job may be disturbed, and whether it can go on elsewhere."""

from __future__ import annotations

from scheduler.planner.ledger import NEVER, Held
from scheduler.planner.policy import Policy
from scheduler.planner.snapshot import Job, Remedy


def can_leave(held: Held) -> bool:
    """Whether a job keeps its step when it leaves, and its nodes can hand on its checkpoint."""
    if held.job.remedy is not Remedy.TRANSPARENT:
        return False
    parts = held.parts
    if len(parts) == 1:
        return parts[0].bin.host.node.can_restore
    return all(part.bin.host.node.can_restore for part in parts)


def quiet_until(job: Job, policy: Policy) -> tuple[float, float]:
    """Until when it may not be pushed off, and until when it may not be moved or resized."""
    started, moved = job.started_at, job.last_moved_at
    if moved is None:
        return -NEVER if started is None else started + policy.minimum_run_s, -NEVER
    since = moved if started is None else max(started, moved)
    return since + policy.minimum_run_s, moved + policy.cooling_s
