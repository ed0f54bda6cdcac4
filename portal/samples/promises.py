"""The ledger of the sample's jobs, reckoned from when they ran and what their receipts tell."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from portal.choices import JobState
from portal.models import Job, Promise

HOUR = timedelta(hours=1)


def lay_promises(jobs: Iterable[Job], now: datetime) -> None:
    """Book every hour of every job, and set the job's own sums to them."""
    for job in jobs:
        entries = list(book(job, now))
        Promise.objects.bulk_create(entries)
        job.entitled = sum(entry.entitled for entry in entries)
        job.delivered = sum(entry.delivered for entry in entries)
        job.accounted_at = job.ended_at or now
        job.save(update_fields=["entitled", "delivered", "accounted_at"])


def book(job: Job, now: datetime) -> Iterable[Promise]:
    ends = job.ended_at or now
    stops = list(standing_still(job, ends))
    hour = job.submitted_at.replace(minute=0, second=0, microsecond=0)
    while hour < ends:
        owed = overlap(hour, hour + HOUR, job.submitted_at, ends)
        ran = overlap(hour, hour + HOUR, job.started_at or ends, ends)
        lost = sum(overlap(hour, hour + HOUR, *stop) for stop in stops)
        paused = lost if job.state == JobState.PAUSED else 0.0
        yield Promise(
            job=job,
            hour=hour,
            tenant=job.tenant,
            tier=job.tier,
            promise=job.tier.promise,
            entitled=max(0.0, owed - paused) * job.devices,
            delivered=max(0.0, ran - lost) * job.devices,
        )
        hour += HOUR


def standing_still(job: Job, ends: datetime) -> Iterable[tuple[datetime, datetime]]:
    for move in job.receipts.all():
        if move.stopped_at:
            until = datetime.fromtimestamp(move.resumed_at, tz=UTC) if move.resumed_at else ends
            yield datetime.fromtimestamp(move.stopped_at, tz=UTC), until


def overlap(begins: datetime, ends: datetime, since: datetime, until: datetime) -> float:
    """Seconds that two stretches of time share."""
    return max(0.0, (min(ends, until) - max(begins, since)).total_seconds())
