"""What follows from the facts: each step of a start, a checkpoint, a move and an end.

``settle`` looks at one job's rows, takes at most one step and can be repeated at any time: after
every report, on every tick, by any process. All state is in the rows, so that a crash between two
steps loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
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
from portal.events import job_changed, renew, wake, wake_if_awaited
from portal.models import Job, PlacedReplica, Placement

PATIENCE = {Want.FROZEN: timedelta(seconds=60), Want.STORED: timedelta(minutes=30)}
"""How long a step towards a checkpoint may take before it is called off."""
Step = Callable[[Job, Placement, list[PlacedReplica], datetime], None]
"""What is done when its time has come; the job's row is locked."""
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
    if act := due(job, placement, replicas, now):
        act(job, placement, replicas, now)


def due(
    job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime
) -> Step | None:
    """The step that the facts about a job's present placement call for; None if nothing follows.

    Looks at nothing else, so that whoever has these rows can tell without the job's lock whether
    it is worth taking.
    """
    match placement.want:
        case Want.RUNNING if placement.ahead_since is not None:
            return _settle_ahead
        case Want.RUNNING:
            return _due_running(job, placement, replicas)
        case Want.FROZEN:
            return _due_frozen(placement, replicas, now)
        case Want.STORED:
            return _due_stored(placement, replicas, now)
        case Want.ABSENT:
            return _due_absent(job, replicas)
    return None


def _all(replicas: list[PlacedReplica], *states: State) -> bool:
    return all(replica.state in states for replica in replicas)


def _failed(replicas: list[PlacedReplica]) -> list[PlacedReplica]:
    return [r for r in replicas if r.state == State.FAILED or (r.exit_code or 0) != 0]


def _due_running(job: Job, placement: Placement, replicas: list[PlacedReplica]) -> Step | None:
    if _failed(replicas):
        return _fail
    if _all(replicas, State.EXITED):
        return settle_success
    if placement.hold and _all(replicas, State.READY, State.RUNNING):
        return _let_go
    if _all(replicas, State.RUNNING, State.EXITED) and job.state != JobState.RUNNING:
        return None if job.ended else _runs
    if job.state == JobState.RUNNING:
        return _grant if job.pause_asked else None
    if job.state == JobState.STARTING and any(_held_up(replica) for replica in replicas):
        return _tell_what_holds_it_up
    return None


def _fail(job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime) -> None:
    settle_failure(job, placement, replicas, _failed(replicas), now)


def _let_go(job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime) -> None:
    """All are there: their gates open, and they go on."""
    placement.hold = False
    placement.save(update_fields=["hold"])
    renew(replica.node_id for replica in replicas)


def _grant(job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime) -> None:
    grant_wish(job, now)


def _held_up(replica: PlacedReplica) -> bool:
    return replica.state == State.PREPARING and bool(replica.detail)


def _tell_what_holds_it_up(
    job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime
) -> None:
    """A node that cannot bring what the job needs says why, and tries again for a while."""
    why = next(f"{r.node.name}: {r.detail}" for r in replicas if _held_up(r))
    if (job.reason, job.sentence) != (HELD_UP, why):
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
    if placement.want == Want.RUNNING and (act := _due_running(job, placement, replicas)):
        act(job, placement, replicas, now)


def _runs(job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime) -> None:
    """All replicas compute: the start, the move or the call-off is complete."""
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
    if job.move_asked or job.asked_devices not in (None, placement.devices):
        wake()  # what was asked for meanwhile
    else:
        wake_if_awaited()


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


def _call_off(job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime) -> None:
    call_off(job, placement, _troubled(placement, replicas, now), now)


def _due_frozen(placement: Placement, replicas: list[PlacedReplica], now: datetime) -> Step | None:
    if placement.state == PlacementState.PARKED:
        return None
    if _troubled(placement, replicas, now):
        return _call_off
    if _all(replicas, State.FROZEN, State.STORED):
        return _store if placement.storing_id is not None else _park
    return None


def _store(job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime) -> None:
    """Nothing runs and nothing arrives: the cut is consistent."""
    want(placement, Want.STORED, now)
    if _all(replicas, State.STORED) and _due_stored(placement, replicas, now):
        _commit(job, placement, replicas, now)  # no fact is still to come


def _park(job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime) -> None:
    """Frozen in place: the devices are given back, the memory stays on its nodes."""
    note_stopped(job, placement, now)
    placement.state = PlacementState.PARKED
    placement.save()
    finish_leaving(job, placement, now)


def _due_stored(placement: Placement, replicas: list[PlacedReplica], now: datetime) -> Step | None:
    checkpoint = placement.storing
    if _troubled(placement, replicas, now):
        return _call_off
    if checkpoint is None:
        return None
    done = (State.STORED, State.RUNNING) if checkpoint.periodic else (State.STORED,)
    stored = all(
        replica.checkpoint >= checkpoint.number and replica.manifest and replica.state in done
        for replica in replicas
    )
    return _commit if stored else None


def _commit(job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime) -> None:
    """All of the cut is stored: the job runs on, or goes where it was to go."""
    if commit_checkpoint(job, placement, now).periodic:
        want(placement, Want.RUNNING, now)
        return
    note_stopped(job, placement, now)
    end_placement(job, placement, now)
    finish_leaving(job, placement, now)


def _due_absent(job: Job, replicas: list[PlacedReplica]) -> Step | None:
    if not _all(replicas, State.ABSENT, State.EXITED, State.FAILED):
        return None
    if job.ended:
        # The workspaces of those that ended by themselves are still on their way.
        here = all(r.outputs or r.error or r.state != State.EXITED for r in replicas)
        return _clear if here else None
    return _go


def _clear(job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime) -> None:
    end_placement(job, placement, now)


def _go(job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime) -> None:
    """It was stopped without a checkpoint, and nothing of it is left."""
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
    rows = restless.select_related("job", "storing").prefetch_related("replicas")
    in_bulk(
        (row.job_id for row in rows if _may_go_on(row, now)), lambda ids: _settle_some(ids, now)
    )


def _may_go_on(row: Placement, now: datetime) -> bool:
    """Whether it is worth locking a job for what is known of one of its placements."""
    if row.state == PlacementState.HELD:
        return row.job.state == JobState.WAITING
    return due(row.job, row, list(row.replicas.all()), now) is not None


def _settle_some(ids: list[int], now: datetime) -> None:
    with locked_jobs(ids) as jobs:
        for job in jobs:
            step(job, now)
