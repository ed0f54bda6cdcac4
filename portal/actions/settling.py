"""What follows from the facts: each step of a start, a checkpoint, a move and an end.

``settle`` looks at one job's rows, takes at most one step and can be repeated at any time: after
every report, on every tick, by any process. All state is in the rows, so that a crash between two
steps loses nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from agents.protocol import State, Want
from portal.actions.accounting import account
from portal.actions.checkpoints import commit_checkpoint
from portal.actions.ending import end_job, finish_leaving, settle_failure, settle_success
from portal.actions.leaving import call_off, leave, may_leave, stop
from portal.actions.locking import in_bulk, locked_job, locked_jobs
from portal.actions.placing import activate, end_placement, held_placement, present_placement, want
from portal.actions.prefetching import is_ready
from portal.actions.receipts import note_resumed, note_stopped
from portal.choices import JobState, MoveKind, PlacementState, Then
from portal.events import job_changed, renew, wake
from portal.models import Job, PlacedReplica, Placement

PATIENCE = {Want.FROZEN: timedelta(seconds=60), Want.STORED: timedelta(minutes=30)}
"""How long a step towards a checkpoint may take before it is called off."""
HELD_UP = "held-up"
"""The reason of a job whose start is tried again on its node."""


def settle(id: int, now: datetime | None = None) -> None:
    """Take the step that the facts about a job call for, if any."""
    with locked_job(id) as job:
        step(job, now or timezone.now())


def step(job: Job, now: datetime) -> None:
    """Take the step that the facts about a job call for, if any. Its row is locked."""
    placement = present_placement(job)
    if placement is None:
        held = held_placement(job)
        if held is not None and job.state == JobState.WAITING:
            activate(job, held, now)
        return
    replicas = list(placement.replicas.all())
    match placement.want:
        case Want.RUNNING:
            _settle_running(job, placement, replicas, now)
        case Want.FROZEN:
            _settle_frozen(job, placement, replicas, now)
        case Want.STORED:
            _settle_stored(job, placement, replicas, now)
        case Want.ABSENT:
            _settle_absent(job, placement, replicas, now)


def _all(replicas: list[PlacedReplica], *states: State) -> bool:
    return all(replica.state in states for replica in replicas)


def _settle_running(
    job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime
) -> None:
    if placement.ahead_since is not None:
        _settle_ahead(job, placement, replicas, now)
        if placement.want != Want.RUNNING:
            return
    failed = [r for r in replicas if r.state == State.FAILED or (r.exit_code or 0) != 0]
    if failed:
        settle_failure(job, placement, replicas, failed, now)
    elif _all(replicas, State.EXITED):
        settle_success(job, placement, replicas, now)
    elif placement.hold and _all(replicas, State.READY, State.RUNNING):
        placement.hold = False
        placement.save()
        renew(replica.node_id for replica in replicas)
    elif _all(replicas, State.RUNNING, State.EXITED) and job.state != JobState.RUNNING:
        _runs(job, placement, now)
    elif job.state == JobState.RUNNING:
        grant_wish(job, now)
    elif job.state == JobState.STARTING:
        _tell_what_holds_it_up(job, replicas)


def _tell_what_holds_it_up(job: Job, replicas: list[PlacedReplica]) -> None:
    """A node that cannot bring what the job needs says why, and tries again for a while."""
    why = next(
        (f"{r.node.name}: {r.detail}" for r in replicas if r.state == State.PREPARING and r.detail),
        "",
    )
    if why and (job.reason, job.sentence) != (HELD_UP, why):
        job.reason, job.reason_numbers, job.sentence = HELD_UP, {}, why
        job.save(update_fields=["reason", "reason_numbers", "sentence"])
        job_changed(job)


def _settle_ahead(
    job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime
) -> None:
    """Its image is being brought to where it goes: stop it once that is done."""
    held = held_placement(job)
    assert placement.ahead_since is not None
    since = max(placement.ahead_since, placement.want_since)
    if any(replica.state in (State.EXITED, State.FAILED) for replica in replicas):
        call_off(job, placement, "A replica ended before it was stopped.", now)
    elif held is None:
        call_off(job, placement, "The place that it was to go to is gone.", now)
    elif _all(replicas, State.RUNNING) and is_ready(job, held, since, now):
        stop(job, placement, now)


def _runs(job: Job, placement: Placement, now: datetime) -> None:
    """All replicas compute: the start, the move or the call-off is complete."""
    if job.ended:
        return
    account(job, now)
    job.state = JobState.RUNNING
    job.running_since = now
    job.started_at = job.started_at or now
    job.waiting_since = None
    if job.stumbles:
        job.stumbles, job.avoid_nodes, job.error, job.detail = 0, {}, "", ""
    if job.reason == HELD_UP:
        job.reason, job.sentence = "", ""
    if placement.running_at is None:
        placement.running_at = now
        placement.save()
    if job.moves or placement.epoch > 1:  # else nothing has ever interrupted it
        note_resumed(job, placement, now)
    job.save()
    job_changed(job)
    wake()


def grant_wish(job: Job, now: datetime) -> None:
    """A person's pause is not the planner's to decide: begin it as soon as the job can leave."""
    if job.pause_asked and may_leave(job, present_placement(job)):
        leave(job, MoveKind.PAUSE, Then.PAUSE, now, reason="asked", asked_by=job.asked_by,
              sentence="Its owner paused it.")  # fmt: skip


def _troubled(placement: Placement, replicas: list[PlacedReplica], now: datetime) -> str:
    """Why the way out can't be gone on with; empty when it can."""
    for replica in replicas:
        if replica.error:
            return f"Replica {replica.rank}: {replica.detail or replica.error}"
        if replica.state == State.EXITED:
            return f"Replica {replica.rank} ended before it could be frozen."
    patience = PATIENCE[Want(placement.want)]
    if now - placement.want_since > patience:
        return f"It took longer than {patience.total_seconds():.0f} s."
    return ""


def _settle_frozen(
    job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime
) -> None:
    if placement.state == PlacementState.PARKED:
        return
    if trouble := _troubled(placement, replicas, now):
        call_off(job, placement, trouble, now)
    elif _all(replicas, State.FROZEN, State.STORED):
        if placement.storing_id is not None:
            want(placement, Want.STORED, now)
        else:
            _park(job, placement, now)


def _park(job: Job, placement: Placement, now: datetime) -> None:
    """Frozen in place: the devices are given back, the memory stays on its nodes."""
    note_stopped(job, placement, now)
    placement.state = PlacementState.PARKED
    placement.save()
    finish_leaving(job, placement, now)


def _settle_stored(
    job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime
) -> None:
    checkpoint = placement.storing
    periodic = checkpoint is not None and checkpoint.periodic
    done = (State.STORED, State.RUNNING) if periodic else (State.STORED,)
    if trouble := _troubled(placement, replicas, now):
        call_off(job, placement, trouble, now)
    elif checkpoint is not None and all(
        replica.checkpoint >= checkpoint.number and replica.manifest and replica.state in done
        for replica in replicas
    ):
        commit_checkpoint(job, placement, now)
        if periodic:
            want(placement, Want.RUNNING, now)
            return
        note_stopped(job, placement, now)
        end_placement(job, placement, now)
        finish_leaving(job, placement, now)


def _settle_absent(
    job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime
) -> None:
    if not _all(replicas, State.ABSENT, State.EXITED, State.FAILED):
        return
    if job.ended:
        # The workspaces of those that ended by themselves are still on their way.
        if all(r.outputs or r.error or r.state != State.EXITED for r in replicas):
            end_placement(job, placement, now)
        return
    if placement.then in (Then.QUEUE, Then.PAUSE, Then.MOVE):
        note_stopped(job, placement, now)
    end_placement(job, placement, now)
    if placement.then in (Then.FAIL, Then.CANCEL, Then.SUCCEED):
        end_job(job, JobState.FAILED, now)
    else:
        finish_leaving(job, placement, now)


def settle_all(now: datetime | None = None) -> None:
    """Settle every job under way; the tick's safety net for lost wake-ups and timeouts."""
    now = now or timezone.now()
    present = Placement.objects.exclude(state=PlacementState.ENDED)
    restless = present.exclude(
        state=PlacementState.ACTIVE, want=Want.RUNNING, job__state=JobState.RUNNING,
        job__pause_asked=False, ahead_since=None,
    ).exclude(state=PlacementState.PARKED)  # fmt: skip
    in_bulk(restless.values_list("job_id", flat=True), lambda ids: _settle_some(ids, now))


def _settle_some(ids: list[int], now: datetime) -> None:
    with locked_jobs(ids) as jobs:
        for job in jobs:
            step(job, now)
