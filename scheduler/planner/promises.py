"""What a job is owed by its tier, and how much of its work is left, at any moment."""

from __future__ import annotations

from scheduler.planner.needs import held_devices
from scheduler.planner.snapshot import Job, Phase, Remedy


def since(job: Job, now: float) -> float:
    """Seconds since the job's measures were true."""
    return 0.0 if job.measured_at is None else max(0.0, now - job.measured_at)


def entitled(job: Job, now: float) -> float:
    """Device-seconds it was entitled to; from its submission on if nobody kept count."""
    if job.entitled <= 0:
        return max(0.0, now - job.submitted_at) * job.devices
    return job.entitled + since(job, now) * job.devices


def delivered(job: Job, now: float) -> float:
    """Device-seconds delivered."""
    if job.phase is Phase.RUNNING:
        return job.delivered + since(job, now) * held_devices(job)
    return job.delivered


def fraction(job: Job, now: float) -> float:
    """The GPU fraction so far; a job that was entitled to nothing yet has had all of it."""
    due = entitled(job, now)
    return delivered(job, now) / due if due > 0 else 1.0


def behind(job: Job, promise: float, now: float) -> float:
    """Seconds at full size that it has had less than promised; below 0 if it has had more."""
    return (promise * entitled(job, now) - delivered(job, now)) / job.devices


def owed(job: Job, promise: float, now: float) -> float:
    """Seconds at full size that the promise is behind; 0 if it is kept."""
    return max(0.0, behind(job, promise, now)) if promise > 0 else 0.0


def worked(job: Job, now: float) -> float:
    """Seconds of work at full size done so far."""
    if job.phase is not Phase.RUNNING or job.measured_at is None:
        return job.worked_s
    begun = job.measured_at if job.started_at is None else max(job.measured_at, job.started_at)
    return job.worked_s + max(0.0, now - begun) * held_devices(job) / job.devices


def at_stake(job: Job, now: float) -> float:
    """Seconds of work lost if it is pushed off now."""
    if job.remedy is not Remedy.REQUEUE:
        return job.at_stake_s
    return job.at_stake_s + worked(job, now) - job.worked_s


def remaining(job: Job, now: float) -> float:
    """Seconds of work at full size still to do; infinite if nobody knows."""
    if job.expected_s is None:
        return float("inf")
    return max(0.0, job.expected_s - worked(job, now))


def ends_at(job: Job, now: float) -> float:
    """When a running job is expected to end at its present size; infinite if nobody knows."""
    return now + remaining(job, now) * job.devices / max(1, held_devices(job))
