"""Seconds of the phases of an act."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

CLEAN: dict[str, Any] = {"error": "", "detail": ""}
"""What a fact says after an act that succeeded."""


class Stopwatch:
    """Adds phases to those of an earlier act."""

    def __init__(self, seconds: dict[str, float] | None = None) -> None:
        self.seconds = dict(seconds or {})

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what is done within."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - start, 6)
