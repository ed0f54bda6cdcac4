"""Reading traces: the format is recognised by its columns, a broken line is told by its number."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scheduler.simulator.arrivals import Arrival, BrokenLine, Trace, UnreadableTraceError, in_order
from scheduler.simulator.traces import acme, gavel, helios, openb, own, philly, synergy, tiresias
from scheduler.simulator.traces.rows import Row

__all__ = ["FORMATS", "read_speeds", "read_trace", "read_trace_lines"]

Reader = Callable[[Row], Arrival | None]


@dataclass(frozen=True, slots=True)
class Format:
    """How the lines of one kind of trace are cut into cells and read."""

    columns: frozenset[str] | tuple[str, ...]
    """A set: what the header must name. A tuple: there is no header, the cells are these."""
    reader: Reader
    delimiter: str = ","


FORMATS: Mapping[str, Format] = {
    "philly": Format(philly.COLUMNS, philly.arrival),
    "helios": Format(helios.COLUMNS, helios.arrival),
    "acme": Format(acme.COLUMNS, acme.arrival),
    "openb": Format(openb.COLUMNS, openb.arrival),
    "muri": Format(tiresias.MURI_COLUMNS, tiresias.muri_arrival),
    "tiresias": Format(tiresias.COLUMNS, tiresias.arrival),
    "own": Format(own.COLUMNS, own.arrival),
    "gavel": Format(gavel.COLUMNS, partial(gavel.arrival, speeds={}), "\t"),
    "synergy": Format(synergy.COLUMNS, partial(synergy.arrival, iteration_s={})),
}
"""By name; the first whose columns are all there is taken when none is named."""


def read_trace(
    path: Path,
    *,
    name: str = "",
    format_name: str | None = None,
    strict: bool = False,
    speeds: gavel.Speeds | None = None,
    iteration_s: Mapping[str, float] | None = None,
    without_devices: bool = False,
) -> Trace:
    """Read a trace file.

    Broken lines are left out and told in ``Trace.broken``; with ``strict`` the first of them raises
    ``UnreadableTraceError``, as does a file of no known format. Tasks that need no device are left
    out too, unless ``without_devices`` asks for them; no fleet can be given those.
    """
    try:
        with path.open(newline=None, encoding="utf-8-sig") as lines:
            return read_trace_lines(
                lines,
                name=name or path.stem,
                format_name=format_name,
                strict=strict,
                speeds=speeds,
                iteration_s=iteration_s,
                without_devices=without_devices,
            )
    except UnicodeDecodeError as error:
        raise UnreadableTraceError(
            f"{name or path.stem} is no UTF-8 text ({error.reason} at byte {error.start:,})"
        ) from None


def read_trace_lines(
    lines: Iterable[str],
    *,
    name: str,
    format_name: str | None = None,
    strict: bool = False,
    speeds: gavel.Speeds | None = None,
    iteration_s: Mapping[str, float] | None = None,
    without_devices: bool = False,
) -> Trace:
    """Read a trace from its lines; see ``read_trace``."""
    numbered = enumerate(lines, start=1)
    number, first = next(numbered, (0, ""))
    format_name = format_name or _recognise(first, name)
    if format_name not in FORMATS:
        raise UnreadableTraceError(
            f"{format_name!r} is no known format; there are: {', '.join(FORMATS)}"
        )
    form = FORMATS[format_name]
    reader = form.reader
    if format_name == "gavel":
        reader = partial(gavel.arrival, speeds=speeds or {})
    elif format_name == "synergy":
        reader = partial(synergy.arrival, iteration_s=iteration_s or {})
    arrivals: list[Arrival] = []
    broken: list[BrokenLine] = []
    left_out = 0
    for row, complaint in _rows(form, (number, first), numbered):
        try:
            if complaint:
                raise ValueError(complaint)
            arrival = reader(row)
        except ValueError as error:
            broken.append(BrokenLine(number=row.number, why=str(error)))
            if strict:
                raise UnreadableTraceError(f"{name}, {broken[-1]}") from None
            continue
        if arrival is None or not (arrival.gpus or without_devices):
            left_out += 1
        else:
            arrivals.append(arrival)
    unused = own.unused(first) if format_name == "own" else ()
    return in_order(name, arrivals, broken, left_out, unused)


def read_speeds(path: Path) -> gavel.Speeds:
    """Steps a second by job type and devices, from a CSV ``job_type,gpus,steps_per_s``."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        rows = [Row(number, cells) for number, cells in enumerate(csv.DictReader(lines), start=2)]
    return {(row.text("job_type"), row.whole("gpus")): row.amount("steps_per_s") for row in rows}


def _recognise(first: str, name: str) -> str:
    header = {cell.strip() for cell in first.split(",")}
    for format_name, form in FORMATS.items():
        if isinstance(form.columns, frozenset) and form.columns <= header:
            return format_name
    if {cell.lower() for cell in header} >= own.COLUMNS:
        return "own"
    if first.count("\t") == len(gavel.COLUMNS) - 1:
        return "gavel"
    cells = first.strip().split(",")
    if len(cells) == len(synergy.COLUMNS) and cells[0].isdigit() and cells[4].isdigit():
        return "synergy"
    if not first.strip():
        raise UnreadableTraceError(f"{name} is empty, or begins with an empty line")
    seen = first.strip()[:80]
    raise UnreadableTraceError(
        f"{name} has a first line of no known format: {seen!r}. A file of your own begins with a"
        f" line of column names, with commas between them, at least"
        f" {', '.join(sorted(own.COLUMNS))}."
    )


def _rows(
    form: Format, first: tuple[int, str], rest: Iterator[tuple[int, str]]
) -> Iterator[tuple[Row, str]]:
    """Each line as a row, with a complaint when its cells do not match the columns."""
    if isinstance(form.columns, tuple):
        columns: Sequence[str] = form.columns
        lines = _chain(first, rest)
    else:
        columns = [cell.strip() for cell in first[1].rstrip("\r\n").split(form.delimiter)]
        if form.columns is own.COLUMNS:
            columns = [column.lower() for column in columns]
        lines = rest
    for number, line in lines:
        if not line.strip():
            continue
        cells = next(csv.reader([line], delimiter=form.delimiter))
        complaint = ""
        if len(cells) != len(columns):
            complaint = f"{len(cells)} cells where the format has {len(columns)}"
        yield Row(number, dict(zip(columns, cells, strict=False))), complaint


def _chain(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest
