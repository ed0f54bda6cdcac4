"""What time itself changes: silent nodes, late steps, due checkpoints, books to be kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from portal.actions.accounting import account
from portal.actions.linking import give_up_silent_nodes
from portal.actions.locking import locked_job
from portal.actions.placing import activate_held
from portal.actions.profiling import ask_due_profiles
from portal.actions.settling import settle_all
from portal.actions.steering import take_checkpoint
from portal.choices import JobState, Remedy
from portal.listening import deaf
from portal.models import Job
from scheduler.live.cluster import live_policy

BOOK_EVERY = timedelta(seconds=15)


def reconcile(now: datetime | None = None) -> None:
    """Settle everything that no report has settled."""
    now = now or timezone.now()
    if not deaf(now):
        give_up_silent_nodes(now)
    settle_all(now)
    activate_held(now)
    take_due_checkpoints(now)
    if live_policy().profiling:
        ask_due_profiles(now)
    keep_books(now)


def take_due_checkpoints(now: datetime) -> list[int]:
    """Begin the periodic checkpoints that are due, and answer their jobs."""
    running = Job.objects.filter(state=JobState.RUNNING, remedy=Remedy.TRANSPARENT)
    due = [job.id for job in running.select_related("tier") if _due(job, now)]
    taken = []
    for id in due:
        with locked_job(id) as job:
            if _due(job, now) and take_checkpoint(job, now):
                taken.append(id)
    return taken


def _due(job: Job, now: datetime) -> bool:
    every = job.checkpoint_every_s
    if every is None:
        every = job.tier.checkpoint_every_s
    if not every or job.running_since is None:
        return False
    # Whatever its outcome, the last attempt counts: a failing checkpoint is not retried at once.
    last = job.checkpoints.order_by("-number").values_list("began_at", flat=True).first()
    since = max(job.running_since, last) if last else job.running_since
    return (now - since).total_seconds() >= every


def keep_books(now: datetime) -> None:
    """Book the time of every live job, so that charts and promises are never far behind."""
    stale = Job.objects.live().filter(accounted_at__lt=now - BOOK_EVERY)
    for id in list(stale.values_list("id", flat=True)):
        with locked_job(id) as job:
            account(job, now)
            job.save(update_fields=["accounted_at", "delivered", "entitled", "worked_s"])
