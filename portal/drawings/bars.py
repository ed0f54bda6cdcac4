"""Bars of quota and use, drawn as SVG so that their widths need no inline style."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

PHASES = ("gate", "freeze", "capture", "device", "dump", "store", "prepare", "launch", "fetch",
          "restore", "resume")  # fmt: skip


def draw_quota(*, used: int, reserved: int, limit: int | None, label: str) -> SafeString:
    """Draw what a tenant uses of its reserve, and beyond it what it borrows.

    ``limit`` is the reserve and what may be borrowed; ``None`` is no limit. A tick stands at the
    reserve.
    """
    whole = max(reserved, used, limit or 0, 1)
    own, borrowed = min(used, reserved), max(0, used - reserved)
    edge = 100 * reserved / whole
    return format_html(
        '<svg class="bar" role="img" aria-label="{}" width="100%" height="12">'
        '<rect class="bed" width="100%" height="8" y="2" rx="4"/>{}{}{}</svg>',
        label,
        _piece("own", 0.0, 100 * own / whole),
        _piece("borrowed", edge, 100 * borrowed / whole),
        _edge(edge) if reserved else "",
    )


def draw_promise(*, fraction: float, promise: float, label: str) -> SafeString:
    """Draw the share of its time that was delivered; a tick stands at what was promised."""
    kept = fraction >= promise * (1 - 1e-6)
    return format_html(
        '<svg class="bar" role="img" aria-label="{}" width="100%" height="12">'
        '<rect class="bed" width="100%" height="8" y="2" rx="4"/>{}{}</svg>',
        label,
        _piece("own" if kept else "short", 0.0, 100 * min(1.0, fraction)),
        _edge(100 * promise) if promise else "",
    )


def in_order(phases: Mapping[str, float]) -> dict[str, float]:
    """Phases as they follow one another; a database need not keep the order they came in."""
    known = {name: place for place, name in enumerate(PHASES)}
    names = sorted(phases, key=lambda name: (known.get(name, len(known)), name))
    return {name: phases[name] for name in names}


def draw_phases(phases: Mapping[str, float]) -> SafeString:
    """Draw what a move's seconds went to, one piece a phase, in their order."""
    phases = in_order(phases)
    whole = sum(phases.values())
    if whole <= 0:
        return SafeString("")
    pieces, left = [], 0.0
    for name, seconds in phases.items():
        width = 100 * seconds / whole
        pieces.append((f"{left:.2f}", f"{width:.2f}", name, f"{seconds:.2f}"))
        left += width
    drawn = '<rect x="{}%" width="{}%" height="8"><title>{}: {} s</title></rect>'
    return format_html(
        '<svg class="phase-bar" aria-hidden="true" width="100%" height="8">{}</svg>',
        format_html_join("", drawn, pieces),
    )


def _edge(place: float) -> SafeString:
    return format_html(
        '<line class="edge" x1="{0}%" x2="{0}%" y1="0" y2="12"/>', f"{min(place, 99.6):.2f}"
    )


def _piece(name: str, left: float, width: float) -> SafeString:
    if width <= 0:
        return SafeString("")
    return format_html(
        '<rect class="part-{}" x="{}%" width="{}%" height="8" y="2" rx="3"/>',
        name,
        f"{left:.2f}",
        f"{min(width, 100 - left):.2f}",
    )
