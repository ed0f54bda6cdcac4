"""Taking a job off its devices: by checkpoint, by freezing it in place, or by stopping it."""

from __future__ import annotations

from datetime import datetime, timedelta

from agents.protocol import State, Want
from portal.actions.accounting import account
from portal.actions.checkpoints import (
    begin_checkpoint,
    discard_checkpoint,
    fall_back,
    newest_checkpoint,
)
from portal.actions.placing import drop_held, present_placement, want
from portal.actions.receipts import call_off_receipt, open_receipt
from portal.choices import JobState, MoveKind, PlacementState, Remedy, Then
from portal.events import job_changed, wake
from portal.models import Job, Placement, User

AFTER_CALL_OFF_S = 30.0
"""How long a job is left alone after a move of it was called off."""


def may_leave(job: Job, placement: Placement | None) -> bool:
    """Whether the job computes undisturbed, so that it can be asked to leave."""
    return (
        placement is not None
        and job.state == JobState.RUNNING
        and placement.state == PlacementState.ACTIVE
        and placement.want == Want.RUNNING
        and not placement.then
        and placement.running_at is not None
        # Facts from before an earlier freeze must not count towards a new cut.
        and all(replica.state == State.RUNNING for replica in placement.replicas.all())
    )


def leave(
    job: Job,
    kind: MoveKind,
    then: Then,
    now: datetime,
    *,
    reason: str = "",
    sentence: str = "",
    asked_by: User | None = None,
    beneficiary: int | None = None,
    ahead: bool = False,
) -> bool:
    """Begin to take a running job off its devices by its gentlest remedy. Its row is locked.

    With ``ahead`` it runs on until its image is where it goes; a job without one is checkpointed
    first. False when it is not in a state to leave; the next cycle sees the truth.
    """
    placement = present_placement(job)
    if placement is None or not may_leave(job, placement):
        return False
    account(job, now)
    receipt = open_receipt(
        job,
        placement,
        kind,
        now,
        reason=reason,
        sentence=sentence,
        asked_by=asked_by,
        beneficiary=beneficiary,
    )
    if job.remedy == Remedy.REQUEUE:
        receipt.lost_s = fall_back(job)
        receipt.save()
    placement.then = then
    if ahead and job.remedy == Remedy.TRANSPARENT:
        placement.ahead_since = now
        if newest_checkpoint(job) is None:
            begin_checkpoint(job, placement, now, periodic=True)
            want(placement, Want.STORED if job.replicas == 1 else Want.FROZEN, now)
        placement.save()
        job.save()
        job_changed(job)
        return True
    stop(job, placement, now)
    return True


def stop(job: Job, placement: Placement, now: datetime) -> None:
    """From here on a job that was asked to leave stands still."""
    account(job, now)
    placement.ahead_since = None
    job.state = JobState.MOVING
    job.running_since = None
    job.save()
    _begin_to_stop(job, placement, now)
    job_changed(job)


def _begin_to_stop(job: Job, placement: Placement, now: datetime) -> None:
    match job.remedy:
        case Remedy.TRANSPARENT:
            begin_checkpoint(job, placement, now, periodic=False)
            # One replica is a consistent cut by itself: it is frozen and stored in one go.
            want(placement, Want.STORED if job.replicas == 1 else Want.FROZEN, now)
        case Remedy.PAUSE:
            want(placement, Want.FROZEN, now)
        case _:
            want(placement, Want.ABSENT, now)


def call_off(job: Job, placement: Placement, why: str, now: datetime) -> None:
    """Something on the way out failed: the job runs on where it is, untouched."""
    discard_checkpoint(placement, why)
    leaving = bool(placement.then)
    placement.then = Then.STAY
    placement.ahead_since = None
    want(placement, Want.RUNNING, now)
    if leaving:
        drop_held(job)
        call_off_receipt(job, why)
        job.pause_asked = job.move_asked = False
        job.wanted_nodes, job.asked_devices = [], None
    leave_alone(job, now)
    job.save()
    job_changed(job)
    wake()


def leave_alone(job: Job, now: datetime) -> None:
    """Keep the planner's hands off the job for a while."""
    job.untouchable_until = now + timedelta(seconds=AFTER_CALL_OFF_S)
