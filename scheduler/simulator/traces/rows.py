"""One line of a trace file, whose cells are read with errors that a person can act on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime


class Row:
    """A line's cells by column name. Every reader raises ``ValueError`` naming the column."""

    __slots__ = ("cells", "number")

    def __init__(self, number: int, cells: Mapping[str, str]) -> None:
        self.number = number
        self.cells = cells

    def text(self, column: str, default: str = "") -> str:
        """The cell without blanks around it, or ``default`` when empty or absent."""
        return (self.cells.get(column) or "").strip() or default

    def amount(self, column: str, default: float | None = None) -> float:
        """A finite number of at least 0."""
        text = self.text(column)
        if not text:
            if default is None:
                raise ValueError(f"{column} is empty")
            return float(default)
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"{column} is not a number: {text!r}") from None
        if not math.isfinite(number) or number < 0:
            raise ValueError(f"{column} must be a number of at least 0, not {text}")
        return number

    def whole(self, column: str, default: int | None = None) -> int:
        """A whole number of at least 0; ``8.0`` counts as 8."""
        number = self.amount(column, None if default is None else float(default))
        if number != int(number):
            raise ValueError(f"{column} must be a whole number, not {self.text(column)}")
        return int(number)

    def moment(self, column: str) -> float:
        """Seconds: a plain number as it is, a date and time as seconds since 1970 (UTC)."""
        text = self.text(column)
        if not text:
            raise ValueError(f"{column} is empty")
        if text.replace(".", "", 1).isdigit():
            return float(text)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{column} is neither seconds nor a date: {text!r}") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
