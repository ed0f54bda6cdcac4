"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import click

Tell = Callable[[Any], None]


def told_by(tell: Tell) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Have a command's answer printed by ``tell``, or as JSON where ``--json`` asks for it."""

    def decorate(command: Callable[..., Any]) -> Callable[..., None]:
        @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
        @functools.wraps(command)
        def run(*args: Any, as_json: bool, **kwargs: Any) -> None:
            answer = command(*args, **kwargs)
            if as_json:
                click.echo(json.dumps(answer, indent=2))
            else:
                tell(answer)

        return run

    return decorate


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]], nothing: str = "None.") -> None:
    """Print rows below their titles, as wide as they are when nobody looks at a screen."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lines = [[cell(value) for value in row] for row in rows]
    if not lines:
        click.echo(nothing)
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=10_000)
    grid = Table(*columns, box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for line in lines:
        grid.add_row(*(Text(word) for word in line))
    console.print(grid)


def fields(row: Iterable[tuple[str, Any]]) -> None:
    """Print names and values, a line each, without those that are empty."""
    told = [(name, cell(value)) for name, value in row if value not in (None, "", [], {})]
    width = max((len(name) for name, _ in told), default=0)
    for name, value in told:
        click.echo(f"{name:<{width}}  {value}")


def cell(value: Any) -> str:
    """Answer a value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return ", ".join(cell(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={cell(item)}" for key, item in value.items())
    return "".join(char if char.isprintable() else " " for char in str(value))


def counted(number: int, noun: str) -> str:
    """Answer a number with its noun: ``1 day``, ``7 days``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def when(text: str | None) -> str:
    """Answer a moment in the local time zone, to the second."""
    if not text:
        return "-"
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def ago(text: str | None) -> str:
    """Answer how long ago a moment was, in its largest unit."""
    if not text:
        return "-"
    seconds = (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
    return duration(max(0.0, seconds))


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.1f}s" if seconds < 10 else f"{seconds:.0f}s"


def size(count: float | None) -> str:
    """Answer bytes in the largest unit that leaves a whole number or more."""
    if count is None:
        return "-"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
