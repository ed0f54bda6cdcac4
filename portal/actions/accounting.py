"""What each job was promised and what it got, second by second, hour by hour."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from portal.choices import JobState, PlacementState
from portal.models import Job, Promise, Tenant

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
    seconds = (now - since).total_seconds()
    if seconds <= 0 or job.ended or job.state == JobState.PAUSED:
        return
    entitled = seconds * job.devices
    delivered = seconds * _delivering(job)
    job.entitled += entitled
    job.delivered += delivered
    if job.devices:
        job.worked_s += delivered / job.devices
    elif job.state == JobState.RUNNING:
        job.worked_s += seconds
    _book(job, since, now, delivered / seconds, entitled / seconds)
    if delivered:
        use_tenant(job.tenant_id, delivered, now)


def _delivering(job: Job) -> float:
    """Devices at work for the job at this moment."""
    if job.state != JobState.RUNNING or job.running_since is None:
        return 0.0
    placement = job.placements.filter(state=PlacementState.ACTIVE).first()
    return float(placement.devices) if placement else 0.0


def _book(job: Job, since: datetime, until: datetime, delivered: float, entitled: float) -> None:
    """Spread rates (devices) over the hours between two moments."""
    hour = since.replace(minute=0, second=0, microsecond=0)
    while hour < until:
        end = hour + timedelta(hours=1)
        seconds = (min(end, until) - max(hour, since)).total_seconds()
        changes = {"delivered": delivered * seconds, "entitled": entitled * seconds}
        entry = Promise.objects.filter(job=job, hour=hour)
        if not entry.update(**{name: F(name) + value for name, value in changes.items()}):
            Promise.objects.create(
                job=job, hour=hour, tenant=job.tenant, tier=job.tier, promise=job.tier.promise,
                **changes,
            )  # fmt: skip
        hour = end


def use_tenant(tenant: int, device_seconds: float, now: datetime) -> None:
    """Add to a tenant's decayed use."""
    row = Tenant.objects.get(pk=tenant)
    Tenant.objects.filter(pk=tenant).update(usage=decayed(row, now) + device_seconds, usage_at=now)


def decayed(tenant: Tenant, now: datetime) -> float:
    """A tenant's use in device-seconds, decayed to ``now`` with the fleet's half-life."""
    if tenant.usage_at is None:
        return 0.0
    age = max(0.0, (now - tenant.usage_at).total_seconds())
    return float(tenant.usage * 0.5 ** (age / HALF_LIFE_S))
