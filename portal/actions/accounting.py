"""What each job was promised and what it got, second by second, hour by hour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.utils import timezone

from portal.choices import JobState, PlacementState
from portal.models import Job, Placement, Promise, Tenant
from portal.unit import unit

HALF_LIFE_S = 7 * 24 * 3600.0


def account(job: Job, now: datetime | None = None) -> None:
    """Book the time since the last booking by the state that the job was in until now.

    Call it before the state changes and save the job afterwards. A job is entitled to its full
    size from submission to end, except while its owner paused it; time lost to moves counts
    against the fleet.
    """
    now = now or timezone.now()
    since = job.accounted_at or job.submitted_at
    job.accounted_at = now
    seconds = _counted_s(job, since, now)
    if not seconds:
        return
    entitled = seconds * job.devices
    delivered = seconds * _delivering(job, standing(job))
    job.entitled += entitled
    job.delivered += delivered
    if job.devices:
        job.worked_s += delivered / job.devices
    elif job.state == JobState.RUNNING:
        job.worked_s += seconds
    with unit() as opened:
        books = opened.heap(Books)
        books.book(job, since, now, delivered / seconds, entitled / seconds)
        if delivered:
            books.use(job.tenant_id, delivered, now)


def reckon(job: Job, placements: Iterable[Placement], now: datetime) -> tuple[float, float]:
    """Device-seconds delivered and entitled to until ``now``: those booked and those since.

    ``placements`` are the job's, at least those that have not ended. Nothing is booked.
    """
    seconds = _counted_s(job, job.accounted_at or job.submitted_at, now)
    working = _delivering(job, placements) if seconds else 0.0
    return job.delivered + seconds * working, job.entitled + seconds * job.devices


def fraction_of(job: Job, placements: Iterable[Placement], now: datetime) -> float | None:
    """The GPU fraction that a job has had until ``now``; None where nothing was owed yet."""
    delivered, entitled = reckon(job, placements, now)
    return delivered / entitled if entitled else None


def _counted_s(job: Job, since: datetime, now: datetime) -> float:
    """Seconds between two moments in which a job in this state is owed its devices."""
    if job.ended or job.state == JobState.PAUSED:
        return 0.0
    return max(0.0, (now - since).total_seconds())


def _delivering(job: Job, placements: Iterable[Placement]) -> float:
    """Devices at work for the job at this moment."""
    if job.state != JobState.RUNNING or job.running_since is None:
        return 0.0
    for placement in placements:
        if placement.state == PlacementState.ACTIVE:
            return float(placement.devices)
    return 0.0


def standing(job: Job) -> list[Placement]:
    """The job's placements that have not ended: as they were locked with it, else as they are."""
    if "standing" in vars(job):
        return job.standing
    return list(job.placements.exclude(state=PlacementState.ENDED).order_by("epoch"))


class Books:
    """Time to be booked, by job and hour and by tenant."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self.hours: dict[tuple[int, datetime], tuple[float, float]] = {}
        self.used: dict[int, float] = {}
        self.used_at: datetime | None = None

    def book(
        self, job: Job, since: datetime, until: datetime, delivered: float, entitled: float
    ) -> None:
        """Spread rates (devices) over the hours between two moments."""
        self.jobs[job.pk] = job
        hour = since.replace(minute=0, second=0, microsecond=0)
        while hour < until:
            end = hour + timedelta(hours=1)
            seconds = (min(end, until) - max(hour, since)).total_seconds()
            had, ought = self.hours.get((job.pk, hour), (0.0, 0.0))
            self.hours[job.pk, hour] = had + delivered * seconds, ought + entitled * seconds
            hour = end

    def use(self, tenant: int, device_seconds: float, now: datetime) -> None:
        """Add to a tenant's use."""
        self.used[tenant] = self.used.get(tenant, 0.0) + device_seconds
        self.used_at = now if self.used_at is None else max(self.used_at, now)

    def write(self) -> None:
        """Add to the entries there are and make the others. The jobs' rows are locked."""
        hours = {hour for _, hour in self.hours}
        rows = Promise.objects.filter(job__in=self.jobs, hour__in=hours).order_by()
        known = {
            (job, hour): (delivered, entitled)
            for job, hour, delivered, entitled in rows.values_list(
                "job_id", "hour", "delivered", "entitled"
            )
        }
        entries = []
        for (id, hour), (delivered, entitled) in sorted(self.hours.items()):
            job, (had, ought) = self.jobs[id], known.get((id, hour), (0.0, 0.0))
            entries.append(
                Promise(
                    job=job, hour=hour, tenant_id=job.tenant_id, tier_id=job.tier_id,
                    promise=job.tier.promise, delivered=had + delivered, entitled=ought + entitled,
                )
            )  # fmt: skip
        if entries:
            Promise.objects.bulk_create(
                entries,
                update_conflicts=True,
                unique_fields=["job", "hour"],
                update_fields=["delivered", "entitled"],
            )
        if self.used_at is not None:
            use_tenants(self.used, self.used_at)


def use_tenants(used: Mapping[int, float], now: datetime) -> None:
    """Add device-seconds to the decayed use of tenants."""
    for row in Tenant.objects.select_for_update().filter(pk__in=used).order_by("pk"):
        Tenant.objects.filter(pk=row.pk).update(
            usage=decayed(row, now) + used[row.pk], usage_at=now
        )


def decayed(tenant: Tenant, now: datetime) -> float:
    """A tenant's use in device-seconds, decayed to ``now`` with the fleet's half-life."""
    if tenant.usage_at is None:
        return 0.0
    age = max(0.0, (now - tenant.usage_at).total_seconds())
    return float(tenant.usage * 0.5 ** (age / HALF_LIFE_S))
