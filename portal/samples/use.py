"""A day of the sample fleet's use, and what one of its jobs printed."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta

from portal.actions.output import path_of
from portal.models import FleetSample, Job, JobUse
from portal.samples.fleet import GIB
from portal.samples.promises import standing_still
from portal.usage import step_at

SHARES = {"vision": 20, "language": 8, "speech": 5, "search": 4, "robotics": 2}
MINUTES = 24 * 60
WELL = 47


def lay_use(now: datetime, seed: int = 7) -> None:
    """Make a sample for every minute of the last day; it ends near what the sample's jobs hold."""
    die = random.Random(seed)
    minute = now.replace(second=0, microsecond=0)
    walk = dict.fromkeys(SHARES, 0.0)
    rows = []
    for ago in range(MINUTES, -1, -1):
        swing = math.sin(2 * math.pi * ago / MINUTES) * 0.25
        tenants: dict[str, int] = {}
        for name, share in SHARES.items():
            # Near the end the walk comes home, so that the charts meet the tiles.
            walk[name] = 0.97 * walk[name] + die.gauss(0, 0.05)
            pull = min(1.0, ago / 90)
            tenants[name] = max(0, round(share * (1 - pull * swing + pull * walk[name])))
        tenants["vision"] -= min(tenants["vision"], max(0, sum(tenants.values()) - WELL))
        held = sum(tenants.values())
        rows.append(
            FleetSample(
                at=minute - timedelta(minutes=ago),
                devices=WELL,
                allocated=held,
                utilisation=held * min(0.97, max(0.4, 0.86 + die.gauss(0, 0.03))),
                waiting=max(0, round(3 + 4 * swing + die.gauss(0, 0.6))),
                running=max(1, held // 4),
                tenants=tenants,
            )
        )
    FleetSample.objects.bulk_create(rows, ignore_conflicts=True)


def lay_output(job: Job) -> None:
    """Let the job have printed a training's log."""
    green, soft, off = "\x1b[32m", "\x1b[2m", "\x1b[0m"
    lines = [f"{soft}rank 0 of {job.replicas}, {job.gpus_per_replica} devices each{off}"]
    for step in range(9000, 9260, 5):
        loss = 2.1 * math.exp(-step / 6000) + 0.02 * math.sin(step)
        lines.append(f"step {step:>6}  loss {green}{loss:.4f}{off}  {soft}1.84 s a step{off}")
    path = path_of(job.pk, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def lay_job_use(job: Job, now: datetime, seed: int = 7) -> None:
    """Let a job have been sampled while it ran: steps, and a checkpoint's pause now and then."""
    if job.started_at is None:
        return
    die = random.Random(seed + job.pk)
    ends = job.ended_at or now
    stops = list(standing_still(job, ends))
    level, at = die.uniform(0.7, 0.97), job.started_at
    rows: list[JobUse] = []
    while at < ends:
        at += timedelta(seconds=step_at((at - job.started_at).total_seconds()))
        if at > ends or any(begins <= at <= until for begins, until in stops):
            continue
        use = min(1.0, max(0.0, level + die.gauss(0, 0.04) - (die.random() < 0.02) * 0.6))
        rows.append(
            JobUse(
                job=job,
                at=at,
                devices=job.devices,
                utilisation=use,
                device_memory=int(job.devices * (58 + 6 * use) * GIB),
                cpus=job.replicas * (9 + 5 * use),
                memory=int(job.replicas * min(96, 22 + len(rows) * 0.2) * GIB),
            )
        )
    JobUse.objects.bulk_create(rows, batch_size=1000)
