"""How people write sizes, times and settings on a command line."""

from __future__ import annotations

import os
import re
from typing import Any

import click

SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
SIZES |= {f"{unit}i": 1024**power for power, unit in enumerate("kmgt", 1)}
TIMES = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


class Size(click.ParamType[int]):
    """Bytes, e.g. 512MiB or 16G."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([0-9.]+) *([kmgt]?i?)b?", str(value).strip().lower())
        try:
            return int(float(found[1]) * SIZES[found[2]]) if found else self.refuse(value)
        except (ValueError, KeyError):
            return self.refuse(value)

    def refuse(self, value: Any) -> int:
        self.fail(f"{value!r} is no size; write for instance 512MiB or 16G.")


class Duration(click.ParamType[float]):
    """Seconds, e.g. 90, 10m or 2h."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"([0-9.]+) *([smhd]?)", str(value).strip().lower())
        try:
            return float(found[1]) * TIMES[found[2]] if found else self.refuse(value)
        except ValueError:
            return self.refuse(value)

    def refuse(self, value: Any) -> float:
        self.fail(f"{value!r} is no time; write for instance 90, 10m or 2h.")


def settings(option: str, given: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=value words; a NAME alone is taken from the environment."""
    values = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals:
            if name not in os.environ:
                raise click.UsageError(f"{option} {name}: there is no such environment variable.")
            value = os.environ[name]
        values[name] = value
    return values
