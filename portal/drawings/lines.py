"""A line of a figure over time, as SVG that scales with its box."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 1000, 40


def draw_lines(
    lines: Sequence[Sequence[tuple[float, float]]],
    top: float,
    label: str,
    marks: Sequence[float] = (),
) -> SafeString:
    """Draw lines of points (place 0 to 1, value) beneath ``top``, each with its ground filled.

    ``marks`` are places at which something happened.
    """
    return format_html(
        '<svg class="lines" role="img" aria-label="{}" viewBox="0 0 {} {}" '
        'preserveAspectRatio="none" width="100%" height="{}">{}{}</svg>',
        label,
        WIDTH,
        HEIGHT,
        HEIGHT,
        format_html_join("", "{}", ((_draw_line(line, top),) for line in lines if line)),
        format_html_join(
            "",
            '<line vector-effect="non-scaling-stroke" x1="{0}" x2="{0}" y1="0" y2="{1}"/>',
            ((f"{WIDTH * place:.1f}", HEIGHT) for place in marks),
        ),
    )


def _draw_line(line: Sequence[tuple[float, float]], top: float) -> SafeString:
    if len(line) == 1:  # a line needs two ends to be seen
        line = [line[0], (line[0][0] + 0.004, line[0][1])]
    points = " ".join(
        f"{WIDTH * x:.1f},{HEIGHT - (HEIGHT - 2) * min(1.0, y / (top or 1.0)):.1f}" for x, y in line
    )
    ground = f"{WIDTH * line[0][0]:.1f},{HEIGHT} {points} {WIDTH * line[-1][0]:.1f},{HEIGHT}"
    return format_html(
        '<polygon points="{}"/><polyline vector-effect="non-scaling-stroke" points="{}"/>',
        ground,
        points,
    )
