"""Runs of simulations side by side: each measure, how far from the first run, and which is best."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404

from portal.access import require_admin
from portal.choices import SimulationState
from portal.drawings.figures import count
from portal.models import Simulation, User

MOST = 60
"""So many runs are compared at once."""
SHADES = 8
DASHES = 4
WORD = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,3}))?", re.ASCII)
PROMISES = " promises kept, %"
MORE_IS_BETTER = {
    "Jobs finished": True,
    "Jobs that never ended": False,
    "Mean completion, h": False,
    "Completion p50, h": False,
    "Completion p95, h": False,
    "Completion p99, h": False,
    "Mean wait, h": False,
    "Wait p99, h": False,
    "Makespan, h": False,
    "Utilisation, %": True,
    "Utilisation to last arrival, %": True,
    "Idle on partly used nodes, %": False,
    "Idle while wanted, %": False,
    "Cost of moves, % of use": False,
    "Finish-time fairness p99": False,
    "Jain's index of tenants": True,
}
"""Measures that tell good from bad; of the others neither more nor less is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a simulation that is done: a column of the comparison."""

    simulation: Simulation
    number: int
    """0: the fleet as it was; 1: with what was changed."""
    name: str

    @property
    def word(self) -> str:
        """What names it in an address."""
        return f"{self.simulation.pk}.{self.number}"

    @property
    def source(self) -> str:
        days = self.simulation.days
        return f"the last {count(days, 'day')}" if days else self.simulation.filename


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value: as text, as a number, and how far it lies from the first run's."""

    text: str | None
    value: float | None
    change: str = ""
    """Empty in the first run, and where one of the two is missing."""
    better: bool | None = None
    """Than in the first run; None: neither better nor worse."""
    best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A measure in all the runs."""

    name: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A table of lines over runs."""

    runs: list[Run]
    lines: list[Line]

    @property
    def strokes(self) -> list[tuple[Run, int, int]]:
        """Each run with its colour and its dash in table and figures."""
        return [(run, n % SHADES, n // SHADES % DASHES) for n, run in enumerate(self.runs)]

    @property
    def words(self) -> str:
        """The runs as an address names them."""
        return ",".join(run.word for run in self.runs)

    @property
    def doubt(self) -> str:
        """Why the runs are hard to compare; empty where they played the same jobs."""
        if len({run.source for run in self.runs}) > 1:
            return "These runs played jobs of different sources: compare shares, not times."
        played = {self._jobs(place) for place in range(len(self.runs))}
        if len(played) > 1:
            return "These runs played different numbers of jobs: compare shares, not times."
        return ""

    def _jobs(self, place: int) -> float:
        counted = ("Jobs finished", "Jobs that never ended")
        cells = (line.cells[place] for line in self.lines if line.name in counted)
        return sum(cell.value or 0.0 for cell in cells)


def compare(runs: Sequence[Run]) -> Comparison:
    """Lay runs side by side, in this order; changes are told from the first."""
    told = [{row[0]: row[1 + run.number] for row in run.simulation.table} for run in runs]
    names = dict.fromkeys(name for values in told for name in values)
    lines = [Line(name=name, cells=_cells(name, [each.get(name) for each in told]))
             for name in names]  # fmt: skip
    return Comparison(runs=list(runs), lines=lines)


def runs_of(simulation: Simulation) -> list[Run]:
    """All runs of one simulation, by the names that they have in it."""
    return [
        Run(simulation=simulation, number=number, name=str(name).capitalize())
        for number, name in enumerate(simulation.runs)
        if simulation.table
    ]


def more_is_better(name: str) -> bool | None:
    """Whether more of a measure is better; None: neither more nor less is."""
    return True if name.endswith(PROMISES) else MORE_IS_BETTER.get(name)


def _cells(name: str, texts: Sequence[str | None]) -> list[Cell]:
    values = [None if text is None else float(text.replace(",", "")) for text in texts]
    more = more_is_better(name)
    known = [value for value in values if value is not None]
    best = None
    if more is not None and len(set(known)) > 1:
        best = max(known) if more else min(known)
    first = values[0]
    return [
        Cell(
            text=text,
            value=value,
            change=_change(name, first, value) if place else "",
            better=None
            if more is None or None in (first, value) or first == value or not place
            else (value > first) is more,  # type: ignore[operator]
            best=best is not None and value == best,
        )
        for place, (text, value) in enumerate(zip(texts, values, strict=True))
    ]


def _change(name: str, first: float | None, value: float | None) -> str:
    if first is None or value is None:
        return ""
    if first == value:
        return "same"
    if "%" in name:
        return f"{value - first:+.1f} points"
    if not first:
        return ""
    percent = 100 * (value - first) / abs(first)
    return f"{percent:+.1f} %" if abs(percent) < 100 else f"{percent:+,.0f} %"


def choose(user: User | Any, words: Iterable[str], *, figures: bool = False) -> list[Run]:
    """The runs that an address names, in its order; admins only.

    A word is ``12.1``, one run, or ``12``, all runs of a simulation; then those that played the
    fleet as it was and came to the same are taken once. What is not done yet has no runs. Raises
    ``Http404`` for what is not there.
    """
    require_admin(user)
    asked = [_asked(word) for word in dict.fromkeys(words)]
    rows = Simulation.objects.filter(id__in={id for id, _ in asked})
    kept = rows.defer("measures") if figures else rows.defer("measures", "figures")
    known = kept.select_related("owner").in_bulk()
    found: dict[tuple[int, int], Simulation] = {}
    seen: set[tuple[Any, ...]] = set()
    for id, number in asked:
        simulation = known.get(id)
        if simulation is None or (number or 0) >= max(1, len(simulation.runs)):
            raise Http404(f"There is no run {id if number is None else f'{id}.{number}'}.")
        if simulation.state != SimulationState.DONE:
            continue
        if number is not None:
            found[id, number] = simulation
            continue
        for place in range(len(simulation.runs)):
            if place == 0:
                played = (simulation.days, simulation.filename, *_told(simulation, place))
                if played in seen:
                    continue
                seen.add(played)
            found[id, place] = simulation
    return _named(list(found.items())[:MOST])


def _asked(word: str) -> tuple[int, int | None]:
    match = WORD.fullmatch(word.strip())
    if match is None:
        raise Http404(f"{word!r} names no run; write 12 or 12.1.")
    return int(match[1]), None if match[2] is None else int(match[2])


def _told(simulation: Simulation, number: int) -> list[tuple[str, str]]:
    return [(row[0], row[1 + number]) for row in simulation.table if row[1 + number] is not None]


def _named(found: Sequence[tuple[tuple[int, int], Simulation]]) -> list[Run]:
    """Runs with names that tell them apart."""
    plain = [
        "As it is" if number == 0 and len(simulation.runs) > 1 else simulation.title
        for (_, number), simulation in found
    ]
    often = Counter(plain)
    return [
        Run(
            simulation=simulation,
            number=number,
            name=f"{name} ({id})" if often[name] > 1 else name,
        )
        for ((id, number), simulation), name in zip(found, plain, strict=True)
    ]


def overlay(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The figures of the runs laid over each other, as Plotly takes them."""
    drawn: dict[str, dict[str, Any]] = {}
    for run in runs:
        for figure in run.simulation.figures:
            if run.number >= len(figure["data"]):
                continue
            title = figure["layout"]["title"]["text"]
            there = drawn.setdefault(title, {"data": [], "layout": figure["layout"]})
            there["data"].append({**figure["data"][run.number], "name": run.name})
    return list(drawn.values())
