"""The planner: what to do with a fleet of accelerators, as a pure function of what is seen."""

from scheduler.planner.allotting import allot, cpus_only
from scheduler.planner.decisions import (
    Decision,
    Hold,
    Migrate,
    Place,
    Plan,
    Preempt,
    Resize,
    Why,
)
from scheduler.planner.memory import Memory
from scheduler.planner.passes import plan
from scheduler.planner.policy import PRESETS, Backfill, Ordering, Policy, Push, Sharing
from scheduler.planner.reasons import Reason
from scheduler.planner.roster import Roster
from scheduler.planner.snapshot import (
    Device,
    DeviceId,
    Job,
    JobId,
    Link,
    MoveCost,
    Node,
    NodeId,
    Phase,
    Quota,
    Remedy,
    Seat,
    Snapshot,
    Tenant,
    TenantId,
    Tier,
    TierId,
)

__all__ = [
    "PRESETS",
    "Backfill",
    "Decision",
    "Device",
    "DeviceId",
    "Hold",
    "Job",
    "JobId",
    "Link",
    "Memory",
    "Migrate",
    "MoveCost",
    "Node",
    "NodeId",
    "Ordering",
    "Phase",
    "Place",
    "Plan",
    "Policy",
    "Preempt",
    "Push",
    "Quota",
    "Reason",
    "Remedy",
    "Resize",
    "Roster",
    "Seat",
    "Sharing",
    "Snapshot",
    "Tenant",
    "TenantId",
    "Tier",
    "TierId",
    "Why",
    "allot",
    "cpus_only",
    "plan",
]
