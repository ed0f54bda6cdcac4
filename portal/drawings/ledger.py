"""Rows of the ledger of promises: a cell for each stretch of time, told apart by height too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

HEIGHTS = {"broken": (0, 24), "kept": (8, 8), "free": (10, 4)}
"""Top and height of a cell: who sees no colours sees what stands out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One stretch of time; ``verdict`` is broken, kept, free (nothing promised) or empty."""

    verdict: str
    words: str


def draw_row(cells: Sequence[Cell], label: str) -> SafeString:
    """Draw a row of cells. It scales with its box, so that nothing needs a style of its own."""
    width = 100 / max(1, len(cells))
    drawn = format_html_join(
        "",
        '<rect class="{}" x="{}%" y="{}" width="{}%" height="{}"><title>{}</title></rect>',
        (
            (
                cell.verdict,
                f"{place * width:.3f}",
                HEIGHTS[cell.verdict][0],
                f"{width * 0.86:.3f}",
                HEIGHTS[cell.verdict][1],
                cell.words,
            )
            for place, cell in enumerate(cells)
            if cell.verdict
        ),
    )
    return format_html(
        '<svg class="hours" role="img" aria-label="{}" width="100%" height="24">'
        '<rect class="bed" y="11" width="100%" height="2"/>{}</svg>',
        label,
        drawn,
    )
