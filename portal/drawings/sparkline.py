"""A line of figures as small as a word."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html
from django.utils.safestring import SafeString


def draw_sparkline(values: Sequence[float], *, top: float, label: str) -> SafeString:
    """Draw values from left to right; ``top`` is the value at the upper edge."""
    if len(values) < 2:
        return SafeString("")
    step = 100 / (len(values) - 1)
    points = [
        f"{place * step:.1f},{30 - 28 * min(1.0, value / top if top else 0):.1f}"
        for place, value in enumerate(values)
    ]
    line = " ".join(points)
    return format_html(
        '<svg class="sparkline" viewBox="0 0 100 32" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><polygon points="0,32 {} 100,32"/><polyline points="{}"/></svg>',
        label,
        line,
        line,
    )
