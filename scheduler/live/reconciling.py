"""What time itself changes: silent nodes, late steps, due checkpoints, books to be kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Max, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from portal.actions.accounting import account
from portal.actions.linking import give_up_silent_nodes, silent_nodes
from portal.actions.locking import locked_job, locked_jobs
from portal.actions.placing import activate_held
from portal.actions.profiling import ask_due_profiles
from portal.actions.settling import settle_all
from portal.actions.steering import take_checkpoint
from portal.choices import JobState, Remedy
from portal.listening import deaf
from portal.models import Job
from scheduler.live.cluster import live_policy
from scheduler.planner import Policy

BOOK_EVERY = timedelta(seconds=15)
BOOKS_A_TURN = 500
BOOKS_AT_ONCE = 100


def reconcile(now: datetime | None = None, policy: Policy | None = None) -> None:
    """Settle everything that no report has settled, under this policy or that in force."""
    now = now or timezone.now()
    if silent_nodes(now).exists() and not deaf(now):
        give_up_silent_nodes(now)
    settle_all(now)
    activate_held(now)
    take_due_checkpoints(now)
    if (policy or live_policy()).profiling:
        ask_due_profiles(now)
    keep_books(now)


def take_due_checkpoints(now: datetime) -> list[int]:
    """Begin the periodic checkpoints that are due, and answer their jobs."""
    taken = []
    for id in _due(Job.objects.all(), now):
        with locked_job(id) as job:
            if _due(Job.objects.filter(pk=id), now) and take_checkpoint(job, now):
                taken.append(id)
    return taken


def _due(jobs: QuerySet[Job], now: datetime) -> list[int]:
    """Those whose last checkpoint, or start, is longer ago than they or their tier say.

    Whatever its outcome, the last attempt counts: a failing checkpoint is not retried at once.
    """
    running = jobs.filter(state=JobState.RUNNING, remedy=Remedy.TRANSPARENT)
    periodic = running.exclude(running_since=None).annotate(
        every=Coalesce("checkpoint_every_s", "tier__checkpoint_every_s"),
        last=Max("checkpoints__began_at"),
    )
    rows = periodic.filter(every__gt=0).order_by("id")
    return [
        id
        for id, every, since, last in rows.values_list("id", "every", "running_since", "last")
        if since and (now - (max(since, last) if last else since)).total_seconds() >= every
    ]


def keep_books(now: datetime) -> None:
    """Book the time of live jobs, so that charts and promises are never far behind.

    In a large fleet only of those whose last booking is longest ago: time is booked whenever
    something happens to a job, and what is not booked yet is not lost.
    """
    stale = Job.objects.live().filter(accounted_at__lt=now - BOOK_EVERY).order_by("accounted_at")
    ids = list(stale.values_list("id", flat=True)[:BOOKS_A_TURN])
    for first in range(0, len(ids), BOOKS_AT_ONCE):
        with locked_jobs(ids[first : first + BOOKS_AT_ONCE]) as jobs:
            for job in jobs:
                account(job, now)
            fields = ["accounted_at", "delivered", "entitled", "worked_s"]
            Job.objects.bulk_update(jobs, fields)
