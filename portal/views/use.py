"""What a job makes of its devices over its life, drawn below the strip of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.safestring import SafeString

from portal.drawings.figures import size
from portal.drawings.lines import draw_lines
from portal.models import Job
from portal.usage import Point, lines_of
from portal.views.life import standing_moves
from portal.views.visitors import Visitor


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure over time with its newest value, its mean and its most."""

    name: str
    newest: str
    mean: str
    most: str
    drawn: SafeString


def describe_use(request: Visitor, job: Job) -> dict[str, Any]:
    """The figures that any node told of; none before the first sample."""
    ends = job.ended_at or timezone.now()
    lines, marks = lines_of(job, ends), moves_of(job, ends)
    figures = [
        figure("Device use", "utilisation", lines, marks, top=1.0),
        figure("Device memory", "device_memory", lines, marks),
        figure("CPUs", "cpus", lines, marks),
        figure("Host memory", "memory", lines, marks),
    ]
    return {"use": [each for each in figures if each]}


def moves_of(job: Job, ends: datetime) -> list[float]:
    """Where in its life a job was moved, 0 to 1."""
    whole_s = max(1.0, (ends - job.submitted_at).total_seconds())
    began = (move.began_at for move in standing_moves(job))
    return [(moment - job.submitted_at).total_seconds() / whole_s for moment in began]


def figure(
    name: str,
    field: str,
    lines: list[list[Point]],
    marks: list[float],
    *,
    top: float | None = None,
) -> Figure | None:
    """Draw one field of the samples; None where it was never above nothing."""
    drawn = [[(point.share, float(getattr(point, field))) for point in line] for line in lines]
    values = [value for line in drawn for _, value in line]
    most = max(values, default=0.0)
    if not most:
        return None
    mean = sum(values) / len(values)
    words = [tell(field, value) for value in (values[-1], mean, most)]
    label = f"{name} over time: now {words[0]}, mean {words[1]}, most {words[2]}"
    return Figure(
        name=name,
        newest=words[0],
        mean=words[1],
        most=words[2],
        drawn=draw_lines(drawn, top or most, label, marks),
    )


def tell(field: str, value: float) -> str:
    if field == "utilisation":
        return f"{100 * value:.0f} %"
    if field == "cpus":
        return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return size(value)
