"""What a job gains from CPUs, drawn: its measured pace as a curve, its matrix as a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from portal.drawings.figures import count
from portal.drawings.figures import share as portion
from scheduler.planner.sensitivity import Matrix

WIDTH, HEIGHT = 320, 120
LEFT, RIGHT, TOP, BOTTOM = 40, 12, 10, 24
LEVELS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A matrix as cells to be printed."""

    cpus: list[str]
    rows: list[tuple[float, list[tuple[int, str]]]]
    """For each amount of memory in bytes, its cells: a level of shade from 0 to 5, and a text."""


def draw_grid(matrix: Matrix) -> Grid:
    """One row for each amount of memory, the most first; one column for each of CPUs."""
    best = max(max(row) for row in matrix.paces) or 1.0
    rows = []
    for column in reversed(range(len(matrix.memory))):
        paces = [row[column] for row in matrix.paces]
        cells = [(round(LEVELS * pace / best), portion(pace, 1.0)) for pace in paces]
        rows.append((matrix.memory[column], cells))
    return Grid(cpus=[f"{cpus:g}" for cpus in matrix.cpus], rows=rows)


def draw_pace(
    points: Sequence[Sequence[float]], *, share: float, now: float | None = None
) -> SafeString:
    """The pace over the CPUs of a replica, with a line at its share and one at what it has now."""
    if not points:
        return SafeString()
    most = max(max(point[0] for point in points), share, now or 0.0)
    top = max(1.0, *(point[1] for point in points))

    def x(cpus: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * cpus / most, 1)

    def y(pace: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * pace / top, 1)

    corners = [(x(cpus), y(pace)) for cpus, pace, *_ in points]
    label = ", ".join(
        f"{portion(pace, 1.0)} with {count(cpus, 'CPU')}" for cpus, pace, *_ in points
    )
    return format_html(
        '<svg class="pace" role="img" aria-label="Pace: {}" viewBox="0 0 {} {}">{}{}{}{}{}</svg>',
        label,
        WIDTH,
        HEIGHT,
        _levels(y, top),
        _upright("share", x(share), f"share: {share:g}"),
        _upright("now", x(now), f"now: {now:g}") if now and abs(now - share) > 1e-6 else "",
        format_html(
            '<polyline points="{}"/>', " ".join(f"{left},{high}" for left, high in corners)
        ),
        format_html_join(
            "",
            '<circle cx="{}" cy="{}" r="3.5"><title>{}: {} of its speed</title></circle>',
            (
                (left, high, count(point[0], "CPU"), portion(point[1], 1.0))
                for (left, high), point in zip(corners, points, strict=True)
            ),
        ),
    )


def _levels(y: Callable[[float], float], top: float) -> SafeString:
    """Lines at nothing, at the whole pace, and at the best one where it lies well above."""
    marks = [0.0, 1.0, *([top] if top > 1.15 else [])]
    return format_html_join(
        "",
        '<line class="level" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>'
        '<text x="{3}" y="{4}" text-anchor="end">{5}</text>',
        (
            (LEFT, WIDTH - RIGHT, y(mark), LEFT - 6, y(mark) + 4, portion(mark, 1.0))
            for mark in marks
        ),
    )


def _upright(name: str, x: float, label: str) -> SafeString:
    anchor = "end" if x > WIDTH * 0.75 else "middle"
    return format_html(
        '<line class="{0}" x1="{1}" x2="{1}" y1="{2}" y2="{3}"/>'
        '<text x="{1}" y="{4}" text-anchor="{5}">{6}</text>',
        name,
        x,
        TOP,
        HEIGHT - BOTTOM,
        HEIGHT - 8,
        anchor,
        label,
    )
