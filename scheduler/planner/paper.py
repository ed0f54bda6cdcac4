"""A plan carried out on paper: the snapshot as it would be if everything worked at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from scheduler.planner.decisions import Decision, Hold, Migrate, Place, Plan, Preempt, Resize
from scheduler.planner.promises import at_stake, delivered, entitled, worked
from scheduler.planner.snapshot import Job, JobId, Phase, Remedy, Snapshot


def enacted(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The snapshot after ``plan``, at the same moment: leaving and moving take no time."""
    decided = {decision.job: decision for decision in plan if not isinstance(decision, Hold)}
    jobs = tuple(
        after(job, decided[job.id], snapshot.now) if job.id in decided else job
        for job in snapshot.jobs
    )
    background = sum(
        isinstance(decision, Migrate) and decision.why.reason.background for decision in plan
    )
    return replace(snapshot, jobs=jobs, moved_at=snapshot.moved_at + (snapshot.now,) * background)


def after(job: Job, decision: Decision, now: float) -> Job:
    """A job after one decision about it."""
    measured = measured_at(job, now)
    match decision:
        case Place(seats=seats):
            return replace(
                measured, phase=Phase.RUNNING, seats=seats, kept_on=(), started_at=now,
            )  # fmt: skip
        case Preempt():
            lost = measured.at_stake_s if job.remedy is Remedy.REQUEUE else 0.0
            return replace(
                measured, phase=Phase.WAITING, seats=(), started_at=None, waiting_since=now,
                kept_on=job.seats if job.remedy is Remedy.PAUSE else (),
                has_image=job.remedy is Remedy.TRANSPARENT,
                worked_s=max(0.0, measured.worked_s - lost), at_stake_s=0.0,
            )  # fmt: skip
        case Migrate(seats=seats) | Resize(seats=seats):
            return replace(
                measured, seats=seats, last_moved_at=now, moves=job.moves + 1, move_asked=False,
                wanted_nodes=frozenset(),
            )  # fmt: skip
        case _:
            return job


def measured_at(job: Job, now: float) -> Job:
    """The job with its measures carried on to ``now``."""
    return replace(
        job,
        worked_s=worked(job, now),
        at_stake_s=at_stake(job, now),
        delivered=delivered(job, now),
        entitled=entitled(job, now),
        measured_at=now,
    )


def gone(snapshot: Snapshot, ids: Iterable[JobId]) -> Snapshot:
    """The snapshot without these jobs: they ended."""
    ended = frozenset(ids)
    return replace(snapshot, jobs=tuple(job for job in snapshot.jobs if job.id not in ended))
