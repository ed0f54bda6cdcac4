"""The strip of a job's life: where the time went, and every move, as one line of SVG."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from portal.drawings.figures import span

WORDS = {
    "waiting": "Waiting",
    "starting": "Starting",
    "running": "Running",
    "moving": "Moving",
    "paused": "Paused",
}
NARROWEST = 0.35
"""Per cent of the strip below which a stretch could not be seen; it is drawn this wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A time in which a job did one thing."""

    tone: str
    begins: datetime
    ends: datetime
    label: str = ""
    """Names of the nodes it ran on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A moment worth a pin: a move or a checkpoint."""

    at: datetime
    kind: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What is drawn: later stretches lie on top of earlier ones."""

    begins: datetime
    ends: datetime
    stretches: tuple[Stretch, ...] = ()
    marks: tuple[Mark, ...] = ()

    def place(self, moment: datetime) -> float:
        """Where a moment lies, in per cent of the strip."""
        length = (self.ends - self.begins).total_seconds()
        if length <= 0:
            return 0.0
        return min(100.0, max(0.0, 100 * (moment - self.begins).total_seconds() / length))


def draw_strip(life: Life) -> SafeString:
    """Draw a life. It scales with its box, so that nothing needs a style of its own."""
    return format_html(
        '<svg class="strip" role="img" aria-label="{}" width="100%" height="46">'
        '<rect class="bed" x="0" y="12" width="100%" height="28" rx="6"/>{}{}</svg>',
        f"Life of the job: {describe(life.stretches)}",
        format_html_join("", "{}", ((_draw_stretch(life, stretch),) for stretch in life.stretches)),
        format_html_join("", "{}", ((_draw_mark(life, mark),) for mark in life.marks)),
    )


def _draw_stretch(life: Life, stretch: Stretch) -> SafeString:
    left, right = life.place(stretch.begins), life.place(stretch.ends)
    width = max(NARROWEST, right - left)
    length = span((stretch.ends - stretch.begins).total_seconds())
    title = f"{WORDS[stretch.tone]} {stretch.label} for {length}".replace("  ", " ")
    room = width > 2 + 1.1 * len(stretch.label)
    text = (
        format_html('<text x="{}%" y="30">{}</text>', f"{left + 0.8:.3f}", stretch.label)
        if stretch.label and room
        else ""
    )
    return format_html(
        '<g class="stretch tone-{}"><title>{}</title>'
        '<rect x="{}%" y="12" width="{}%" height="28"/>{}</g>',
        stretch.tone,
        title,
        f"{min(left, 100 - width):.3f}",
        f"{width:.3f}",
        text,
    )


def _draw_mark(life: Life, mark: Mark) -> SafeString:
    x = f"{life.place(mark.at):.3f}%"
    return format_html(
        '<g class="mark mark-{}"><title>{}</title><line x1="{}" x2="{}" y1="8" y2="44"/>'
        '<circle cx="{}" cy="6" r="4"/></g>',
        mark.kind,
        mark.title,
        x,
        x,
        x,
    )


def describe(stretches: Iterable[Stretch]) -> str:
    """The strip in words, for those who do not see it."""
    totals: dict[str, float] = {}
    for stretch in stretches:
        length = (stretch.ends - stretch.begins).total_seconds()
        totals[stretch.tone] = totals.get(stretch.tone, 0.0) + length
    parts = [f"{WORDS[tone].lower()} {span(length)}" for tone, length in totals.items()]
    return ", ".join(parts) or "nothing yet"
