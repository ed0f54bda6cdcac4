"""What people ask of jobs: cancel, pause, resume, migrate, resize, checkpoint."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from agents.protocol import Want
from portal.actions.accounting import account
from portal.actions.checkpoints import begin_checkpoint, discard_checkpoint
from portal.actions.ending import end_job
from portal.actions.leaving import may_leave
from portal.actions.locking import locked_job
from portal.actions.placing import drop_held, end_placement, present_placement, want
from portal.actions.receipts import call_off_receipt
from portal.actions.settling import grant_wish
from portal.actions.sizes import sizes_of
from portal.choices import JobState, PlacementState, Remedy, Then
from portal.events import job_changed, wake
from portal.models import Job, Node, User
from portal.refusals import Refused


def _conflict(sentence: str) -> Refused:
    return Refused(sentence, id="conflict", conflict=True)


def _refuse_ended(job: Job) -> None:
    if job.ended:
        raise _conflict(f"Job {job.id} has ended ({job.get_state_display().lower()}); clone it.")


def cancel_job(user: User, job: Job) -> None:
    """End a job wherever it stands. Its files so far can be downloaded if it ran."""
    now = timezone.now()
    with locked_job(job.id) as locked:
        _refuse_ended(locked)
        placement = present_placement(locked)
        locked.detail = f"Cancelled by {user.get_username()}."
        end_job(locked, JobState.CANCELLED, now)
        if placement is None:
            return
        discard_checkpoint(placement, "The job was cancelled.")
        call_off_receipt(locked, "The job was cancelled.")
        if placement.state == PlacementState.PARKED:
            end_placement(locked, placement, now)
        else:
            placement.then = Then.CANCEL
            want(placement, Want.ABSENT, now)


def pause_job(user: User, job: Job) -> None:
    """Take a job off its devices until it is resumed; a waiting one is kept from starting."""
    now = timezone.now()
    with locked_job(job.id) as locked:
        _refuse_ended(locked)
        if locked.state == JobState.PAUSED or locked.pause_asked:
            return
        if locked.remedy == Remedy.REQUEUE and locked.state != JobState.WAITING:
            raise _conflict(f"It can't be paused where it runs: {locked.verdict}")
        locked.asked_by = user
        if locked.state == JobState.WAITING and present_placement(locked) is None:
            drop_held(locked)
            account(locked, now)
            locked.state = JobState.PAUSED
            locked.sentence = "Paused by its owner; resume it to have it wait for devices."
        else:
            locked.pause_asked = True
        locked.save()
        grant_wish(locked, now)
        job_changed(locked)
        wake()


def resume_job(user: User, job: Job) -> None:
    """Let a paused job wait for devices again; it goes on at the step where it was stopped."""
    now = timezone.now()
    with locked_job(job.id) as locked:
        _refuse_ended(locked)
        if locked.state != JobState.PAUSED:
            if not locked.pause_asked:
                raise _conflict(f"Job {job.id} is not paused.")
            locked.pause_asked = False
            _turn_back(locked)
        else:
            account(locked, now)
            locked.state = JobState.WAITING
            locked.waiting_since = now
            locked.sentence = ""
            locked.stumbles, locked.avoid_nodes = 0, {}
        locked.save()
        job_changed(locked)
        wake()


def _turn_back(job: Job) -> None:
    """The job is still on its way out: let it wait for devices once it has left."""
    placement = present_placement(job)
    if placement is not None and placement.then == Then.PAUSE:
        placement.then = Then.QUEUE
        placement.save()


def migrate_job(user: User, job: Job, node: str = "") -> None:
    """Have a running job moved to a node, or anywhere else; the planner finds the devices."""
    with locked_job(job.id) as locked:
        _refuse_ended(locked)
        if locked.state not in (JobState.RUNNING, JobState.STARTING, JobState.MOVING):
            raise _conflict(f"Only a running job can be moved; this one is {locked.state}.")
        if locked.remedy != Remedy.TRANSPARENT:
            raise _conflict(f"It can't be moved without loss: {locked.verdict}")
        if node:
            _check_target(locked, node)
        locked.move_asked, locked.wanted_nodes = True, [node] if node else []
        locked.asked_by = user
        locked.save()
        wake()


def _check_target(job: Job, name: str) -> None:
    target = Node.objects.filter(name=name).first()
    if target is None:
        names = ", ".join(Node.objects.values_list("name", flat=True)[:12])
        raise Refused({"node": f"There is no node {name!r}. Choose one of: {names}."})
    if not target.well:
        raise Refused({"node": f"{name} is not heard of; choose another node."})
    if target.cordoned or target.draining:
        raise Refused({"node": f"{name} takes no new jobs ({target.note or 'cordoned'})."})
    if not target.able("migrate"):
        raise Refused({"node": f"{name} cannot restore a job: {target.why_not('migrate')}."})
    placement = present_placement(job)
    if placement and set(placement.replicas.values_list("node__name", flat=True)) == {name}:
        raise Refused({"node": f"The job already runs on {name}."})


def resize_job(user: User, job: Job, devices: int) -> None:
    """Have the same replicas spread over another number of devices."""
    with locked_job(job.id) as locked:
        _refuse_ended(locked)
        sizes = sizes_of(locked)
        if devices not in sizes:
            can = ", ".join(map(str, sizes))
            raise Refused({"devices": f"Choose one of these numbers of devices: {can}."})
        if locked.state != JobState.WAITING and locked.remedy != Remedy.TRANSPARENT:
            raise _conflict(f"It can't be resized while it runs: {locked.verdict}")
        locked.asked_devices = devices
        locked.asked_by = user
        locked.save()
        wake()


def checkpoint_job(user: User, job: Job) -> None:
    """Take a checkpoint now; the job runs on as soon as its memory is captured."""
    with locked_job(job.id) as locked:
        _refuse_ended(locked)
        if not take_checkpoint(locked, timezone.now()):
            if locked.remedy != Remedy.TRANSPARENT:
                raise _conflict(f"It can't be checkpointed where it runs: {locked.verdict}")
            raise _conflict("It is being moved or checkpointed just now; try again in a moment.")


def take_checkpoint(job: Job, now: datetime) -> bool:
    """Begin a periodic checkpoint of an undisturbed job (row locked); False if it can't be."""
    placement = present_placement(job)
    if placement is None or job.remedy != Remedy.TRANSPARENT or not may_leave(job, placement):
        return False
    account(job, now)
    job.save()
    begin_checkpoint(job, placement, now, periodic=True)
    want(placement, Want.STORED if job.replicas == 1 else Want.FROZEN, now)
    return True
