"""Samples of what running jobs use: often while a job is young, seldom when it has run for long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from portal import telemetry
from portal.choices import JobState, PlacementState
from portal.models import Job, JobUse, PlacedReplica
from portal.usage import EVERY_S, step_at
from scheduler.live.lease import turn


def sample_jobs(now: datetime | None = None) -> None:
    """Keep a sample of each job that is due, once in the whole fleet."""
    now = now or timezone.now()
    with turn("samples") as figures:
        if figures is None:
            return
        jobs = due(now)
        figures["jobs"] = len(jobs)
        JobUse.objects.bulk_create(take(jobs, now), batch_size=1000, ignore_conflicts=True)


def due(now: datetime) -> list[int]:
    """The running jobs whose next sample falls into this turn.

    Whether it does follows from a job's age alone, so that nothing need be remembered.
    """
    running = Job.objects.filter(state=JobState.RUNNING)
    found = []
    for id, started in running.order_by().values_list("id", "started_at"):
        if started is None:
            continue
        age = (now - started).total_seconds()
        step = step_at(age)
        if age // step != (age - EVERY_S) // step:
            found.append(id)
    return found


def take(jobs: list[int], now: datetime) -> Iterable[JobUse]:
    """A sample of each of these jobs that any node told of lately."""
    seats = PlacedReplica.objects.filter(
        placement__job__in=jobs, placement__state=PlacementState.ACTIVE
    ).values_list("placement__job_id", "rank", "node__name", "devices")
    rows = list(seats)
    told = telemetry.latest({node for _, _, node, _ in rows})
    by_job: dict[int, list[tuple[int, str, list[str]]]] = {}
    for job, rank, node, devices in rows:
        by_job.setdefault(job, []).append((rank, node, devices))
    for job, held in by_job.items():
        if any(node in told for _, node, _ in held):
            yield sum_up(job, held, told, now)


def sum_up(
    job: int,
    held: list[tuple[int, str, list[str]]],
    told: Mapping[str, Mapping[str, Any]],
    now: datetime,
) -> JobUse:
    """Sums over the replicas of one job; devices that several share count once."""
    places = {(node, uid) for _, node, devices in held for uid in devices}
    known = [
        told[node]["devices"][uid]
        for node, uid in sorted(places)
        if uid in told.get(node, {}).get("devices", {})
    ]
    replicas = [
        told.get(node, {}).get("replicas", {}).get(f"{job}/{rank}", {}) for rank, node, _ in held
    ]
    return JobUse(
        job_id=job,
        at=now,
        devices=len(known),
        utilisation=sum(use["utilisation"] for use in known) / max(1, len(known)),
        device_memory=sum(use["memory"] for use in known),
        cpus=sum(use.get("cpus", 0.0) for use in replicas),
        memory=sum(use.get("memory", 0) for use in replicas),
    )
