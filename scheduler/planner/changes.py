"""What is the same about a running job seen twice."""

from __future__ import annotations

from scheduler.planner.snapshot import Job, Phase


def same_times(old: Job, new: Job) -> bool:
    """Whether a job's protected times are what they were."""
    return (
        old.phase is new.phase
        and old.started_at == new.started_at
        and old.last_moved_at == new.last_moved_at
    )


def same_hold(old: Job, new: Job) -> bool:
    """Whether a job holds and may do what it did: only its measures or its times changed."""
    return (
        new.phase is not Phase.WAITING
        and (old.seats is new.seats or old.seats == new.seats)
        and old.tenant == new.tenant
        and old.tier == new.tier
        and old.fewest_devices == new.fewest_devices
        and old.remedy is new.remedy
        and old.cpus_per_replica == new.cpus_per_replica
        and old.memory_per_replica == new.memory_per_replica
        and old.avoid_nodes == new.avoid_nodes
    )
