"""The pure core: what the planner is told, what it may do, and what it answers."""

from scheduler.planner.decisions import Decision, Hold, Migrate, Place, Plan, Preempt, Resize, Why
from scheduler.planner.policy import PRESETS, Policy
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import (
    Device,
    DeviceId,
    Job,
    JobId,
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
