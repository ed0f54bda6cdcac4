"""Tables for other programs: lines of CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import StringIO
from typing import Any

FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def as_lines(rows: Iterable[Sequence[Any]]) -> bytes:
    """Rows as CSV, in UTF-8."""
    buffer = StringIO()
    csv.writer(buffer).writerows([harmless(value) for value in row] for row in rows)
    return buffer.getvalue().encode()


def harmless(value: Any) -> Any:
    """A moment in ISO 8601, and no word that a spreadsheet would take for a formula."""
    if isinstance(value, datetime):
        return value.isoformat()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
