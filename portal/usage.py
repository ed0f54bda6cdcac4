"""How often a job's use is sampled, and its samples as lines that can be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from portal.models import Job, JobUse

EVERY_S = 10.0
"""Seconds between two turns of sampling."""
STEPS = ((15 * 60.0, EVERY_S), (6 * 3600.0, 60.0), (float("inf"), 300.0))
"""Up to this age of a job (seconds since it first ran), a sample every so many seconds."""
POINTS = 300


def step_at(age_s: float) -> float:
    """Seconds from one sample to the next of a job of this age."""
    return next(step for limit, step in STEPS if age_s < limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The mean of some samples that lie close together; ``share`` is their place, 0 to 1."""

    share: float
    utilisation: float
    device_memory: float
    cpus: float
    memory: float


def lines_of(job: Job, ends: datetime) -> list[list[Point]]:
    """A job's use from its submission to its end, thinned out; a new line after each gap."""
    whole_s = max(1.0, (ends - job.submitted_at).total_seconds())
    rows = list(job.use.filter(at__lte=ends))
    lines: list[list[JobUse]] = [[]]
    for row, after in pairwise([*rows, None]):
        assert row is not None
        lines[-1].append(row)
        if after and (after.at - row.at).total_seconds() > 2.5 * step_of(job, after):
            lines.append([])
    return [list(thin(line, job, whole_s)) for line in lines if line]


def step_of(job: Job, row: JobUse) -> float:
    began = job.started_at or job.submitted_at
    return step_at((row.at - began).total_seconds())


def thin(rows: Sequence[JobUse], job: Job, whole_s: float) -> Iterable[Point]:
    """At most ``POINTS`` points over the whole life; each the mean of its rows."""
    groups: dict[int, list[JobUse]] = {}
    for row in rows:
        seconds = (row.at - job.submitted_at).total_seconds()
        groups.setdefault(int(POINTS * seconds / whole_s), []).append(row)
    for group in groups.values():
        count = len(group)
        middle = sum((row.at - job.submitted_at).total_seconds() for row in group) / count
        yield Point(
            share=middle / whole_s,
            utilisation=sum(row.utilisation for row in group) / count,
            device_memory=sum(row.device_memory for row in group) / count,
            cpus=sum(row.cpus for row in group) / count,
            memory=sum(row.memory for row in group) / count,
        )
