"""The minute's chores: samples for charts, garbage of the chunk store, rows that have grown old."""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Sum
from django.utils import timezone

from agents.checkpoints import collect, open_store
from portal import changes, telemetry
from portal.actions.checkpoints import living_manifests, retain
from portal.actions.linking import has_listened
from portal.actions.playing import forget_traces, give_up_silent
from portal.actions.uploads import discard_uploads
from portal.choices import ENDED_STATES, JobState, PlacementState
from portal.listening import deaf
from portal.models import (
    Checkpoint,
    Decision,
    Device,
    FleetSample,
    Job,
    JobUse,
    Node,
    Placement,
    Promise,
)
from scheduler.live.lease import turn

log = logging.getLogger(__name__)

COLLECT_EVERY_S = 300.0
GRACE_S = 1800.0
"""Chunks younger than this may belong to a store in progress."""
SAMPLES_KEPT = timedelta(days=30)
DECISIONS_KEPT = timedelta(days=30)
PROMISES_KEPT = timedelta(days=400)
"""Of jobs that have ended; long enough to compare a month with the same one a year ago."""


def keep_house(now: datetime | None = None) -> None:
    """Do what is due; each chore at most once in the whole fleet at a time."""
    now = now or timezone.now()
    with turn("house") as figures:
        if figures is None:
            return
        sample(now)
        forget(now)
        changes.forget_old()
        discard_uploads(now)
        give_up_silent(now)
        forget_traces(now)
    if deaf(now) or not has_listened(now):
        # Agents may have stored what they could not yet tell of.
        return
    with turn("collection") as figures:
        if figures is not None:
            figures.update(collect_garbage())


def sample(now: datetime) -> None:
    """Keep the fleet's use of this minute."""
    nodes = list(Node.objects.exclude(heard_at=None).filter(lost_at=None))
    used = telemetry.latest(node.name for node in nodes)
    active = Placement.objects.filter(state=PlacementState.ACTIVE, job__ended_at=None)
    by_tenant = active.values_list("job__tenant__slug").annotate(held=Sum("devices")).order_by()
    tenants = {slug: held for slug, held in by_tenant if held}
    FleetSample.objects.update_or_create(
        at=now.replace(second=0, microsecond=0),
        defaults={
            "devices": Device.objects.filter(node__in=nodes, sick="").count(),
            "allocated": sum(tenants.values()),
            "utilisation": sum(
                device["utilisation"]
                for second in used.values()
                for device in second["devices"].values()
            ),
            "waiting": Job.objects.filter(state=JobState.WAITING).count(),
            "running": Job.objects.filter(state=JobState.RUNNING).count(),
            "tenants": tenants,
        },
    )


def forget(now: datetime) -> None:
    """Drop rows that no page shows any more, and checkpoints of jobs that have ended."""
    FleetSample.objects.filter(at__lt=now - SAMPLES_KEPT).delete()
    Promise.objects.filter(hour__lt=now - PROMISES_KEPT, job__state__in=ENDED_STATES).delete()
    JobUse.objects.filter(at__lt=now - SAMPLES_KEPT).delete()
    Decision.objects.filter(at__lt=now - DECISIONS_KEPT, job__state__in=ENDED_STATES).delete()
    over = Checkpoint.objects.filter(job__state__in=ENDED_STATES, collected=False)
    for job in Job.objects.filter(id__in=over.values("job_id")):
        retain(job, kept=0)


def collect_garbage() -> dict[str, float]:
    """Delete chunks that no living manifest names."""
    began = time.perf_counter()
    collected = collect(
        open_store(settings.STORE), living_manifests(), now=time.time(), grace_s=GRACE_S
    )
    return {
        "chunks": collected.chunks,
        "bytes": collected.bytes,
        "seconds": round(time.perf_counter() - began, 3),
    }
