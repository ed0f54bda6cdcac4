"""How jobs end, fail, try again, and what becomes of them once they have left."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta

from agents.protocol import State, Want
from portal.actions.accounting import account
from portal.actions.checkpoints import condemn, fall_back, newest_checkpoint
from portal.actions.placing import activate, drop_held, end_placement, held_placement, want
from portal.actions.receipts import open_receipt, present_receipt
from portal.choices import JobState, MoveKind, Then
from portal.events import job_changed, wake_if_awaited
from portal.models import Job, PlacedReplica, Placement

USERS_ERRORS = ("command-", "source-", "archive-", "git-", "upload-", "out-of-memory")
"""Errors that would be the same on every node: the job fails at once."""

STUMBLES = 3
"""Failures of the fleet's own in a row before a job is given up, or paused if it has a checkpoint.
"""

AVOIDED = timedelta(minutes=2)
"""How long a job stays away from a node that could not start it."""

CRASHES = 3
CRASH_LOOP_S = 10.0
"""So many deaths in a row, each within this time of a start, are a crash loop."""


def end_job(job: Job, state: JobState, now: datetime) -> None:
    """The job is over."""
    if job.ended:
        return
    account(job, now)
    job.state = state
    job.ended_at = now
    job.running_since = None
    job.pause_asked = job.move_asked = False
    job.reason, job.reason_numbers, job.sentence = "", {}, ""
    drop_held(job)
    job.save()
    job_changed(job)
    wake_if_awaited()


def finish_leaving(job: Job, placement: Placement, now: datetime) -> None:
    """The job has left its devices: it waits, goes on elsewhere, or stays paused."""
    then = Then(placement.then)
    if then == Then.PAUSE or job.running_since is not None:
        account(job, now)  # else what it is owed and what it gets stay the same
    placement.then = Then.STAY
    placement.save(update_fields=["then"])
    job.running_since = None
    job.moves += 1
    job.last_moved_at = now
    job.state = JobState.PAUSED if then == Then.PAUSE else JobState.WAITING
    if then == Then.PAUSE:
        job.pause_asked = False
        job.sentence = _why_paused(job)
    else:
        job.waiting_since = now
    held = held_placement(job)
    goes_on = held is not None and job.state == JobState.WAITING and activate(job, held, now)
    if not goes_on:  # else it was saved as it set out
        job.save()
        job_changed(job)
    wake_if_awaited()


def _why_paused(job: Job) -> str:
    if job.stumbles > STUMBLES:
        return f"Paused after {job.stumbles} failed starts: {job.detail} Resume it to try again."
    return "Paused by its owner; resume it to go on at the same step."


def settle_success(
    job: Job, placement: Placement, replicas: list[PlacedReplica], now: datetime
) -> None:
    """Every replica ended with 0. The placement ends once the workspaces are stored."""
    job.exit_code = 0
    _note_start(job, replicas, now)
    end_job(job, JobState.SUCCEEDED, now)
    if all(replica.outputs or replica.error for replica in replicas):
        end_placement(job, placement, now)


def settle_failure(
    job: Job,
    placement: Placement,
    replicas: list[PlacedReplica],
    failed: list[PlacedReplica],
    now: datetime,
) -> None:
    """A replica failed: its peers are ended too, and the job tries again or is over."""
    first = min(failed, key=lambda replica: (replica.stopped_at or now.timestamp(), replica.rank))
    if job.ended:
        if all(r.outputs or r.error or r.state != State.EXITED for r in replicas):
            end_placement(job, placement, now)
        return
    if first.state == State.FAILED and not first.error.startswith(USERS_ERRORS):
        _stumble(job, placement, first, now)
        return
    job.exit_code, job.error, job.detail = first.exit_code, first.error, _cause(first, replicas)
    _note_start(job, replicas, now)
    if first.state == State.EXITED and _may_retry(job, placement, now):
        _retry(job, placement, now)
        return
    end_job(job, JobState.FAILED, now)
    if any(replica.state not in (State.EXITED, State.FAILED) for replica in replicas):
        placement.then = Then.FAIL
        want(placement, Want.ABSENT, now)
    elif all(r.outputs or r.error or r.state != State.EXITED for r in replicas):
        end_placement(job, placement, now)


def _note_start(job: Job, replicas: list[PlacedReplica], now: datetime) -> None:
    """One that ended before it was ever reported running: its nodes say when it began."""
    began = [replica.started_at for replica in replicas if replica.started_at]
    if job.started_at is None and began:
        started = datetime.fromtimestamp(max(began), tz=now.tzinfo)
        job.started_at = min(now, max(job.submitted_at, started))


def _cause(first: PlacedReplica, replicas: list[PlacedReplica]) -> str:
    if first.detail:
        story = first.detail
    elif first.exit_code is not None and first.exit_code > 128:
        story = f"Its command was ended by signal {first.exit_code - 128}."
    else:
        story = f"Its command exited with {first.exit_code}."
    return story if len(replicas) == 1 else f"Replica {first.rank} of {len(replicas)}: {story}"


def _may_retry(job: Job, placement: Placement, now: datetime) -> bool:
    if job.retried >= job.retries:
        return False
    if _quick_deaths(job, placement, now) < CRASHES:
        return True
    job.error = job.error or "crash-loop"
    job.detail += (
        f" It died {CRASHES} times in a row within {CRASH_LOOP_S:.0f} s of its start:"
        " a crash loop, so it is not tried again."
    )
    return False


def _quick_deaths(job: Job, placement: Placement, now: datetime) -> int:
    """How many deaths in a row, this one included, came shortly after a start."""
    retries = job.receipts.filter(kind=MoveKind.RETRY).order_by("-id")
    starts = job.placements.exclude(running_at=None).order_by("-epoch")
    lives = [now - (placement.running_at or now)]
    for died_at in retries.values_list("began_at", flat=True)[: CRASHES - 1]:
        began = starts.filter(running_at__lte=died_at).values_list("running_at", flat=True).first()
        lives.append(died_at - (began or died_at))
    quick = itertools.takewhile(lambda life: life.total_seconds() < CRASH_LOOP_S, lives)
    return len(list(quick))


def _retry(job: Job, placement: Placement, now: datetime) -> None:
    job.retried += 1
    sentence = f"{job.detail} Retry {job.retried} of {job.retries}."
    _go_back(job, placement, MoveKind.RETRY, now, reason="retry", sentence=sentence)
    job.state = JobState.MOVING
    job.save()
    placement.then = Then.RETRY
    want(placement, Want.ABSENT, now)
    job_changed(job)


def _go_back(
    job: Job, placement: Placement, kind: MoveKind, now: datetime, *, reason: str, sentence: str
) -> None:
    """Book what is lost by going on from the newest checkpoint, on the receipt under way if any."""
    account(job, now)
    receipt = present_receipt(job) or open_receipt(
        job, placement, kind, now, reason=reason, sentence=sentence
    )
    receipt.lost_s += fall_back(job)
    stops = [replica.stopped_at for replica in placement.replicas.all() if replica.stopped_at]
    receipt.stopped_at = receipt.stopped_at or min(stops, default=now.timestamp())
    receipt.left_at = now
    receipt.save()
    job.running_since = None


def _stumble(job: Job, placement: Placement, first: PlacedReplica, now: datetime) -> None:
    """The fleet could not start, restore or keep it: try elsewhere, but not again and again."""
    job.stumbles += 1
    job.error, job.detail = first.error, first.detail
    if first.error == "image-damaged" and placement.checkpoint is not None:
        condemn(placement.checkpoint, first.detail)
    if placement.running_at is not None or present_receipt(job) is not None:
        told = f"{first.node.name}: {first.detail}"
        _go_back(job, placement, MoveKind.RECOVER, now, reason=first.error, sentence=told)
    if job.stumbles <= STUMBLES:
        until = (now + AVOIDED).timestamp()
        job.avoid_nodes = {**job.avoid_nodes, first.node.name: until}
        placement.then = Then.QUEUE
    elif newest_checkpoint(job) is not None:
        # Its work is worth keeping until somebody has seen to the cause.
        placement.then = Then.PAUSE
    else:
        job.detail = f"Given up after {job.stumbles} failed starts. The last: {first.detail}"
        placement.then = Then.FAIL
    job.save()
    want(placement, Want.ABSENT, now)


def lose(job: Job, placement: Placement, sentence: str, now: datetime) -> None:
    """A node of the placement is gone: go back to the last checkpoint, elsewhere."""
    if job.ended:
        end_placement(job, placement, now)
        return
    _go_back(job, placement, MoveKind.RECOVER, now, reason="node-lost", sentence=sentence)
    drop_held(job)
    end_placement(job, placement, now)
    job.moves += 1
    paused = job.pause_asked or placement.then == Then.PAUSE
    job.state = JobState.PAUSED if paused else JobState.WAITING
    job.waiting_since = now if job.state == JobState.WAITING else None
    job.save()
    job_changed(job)
