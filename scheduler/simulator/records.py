"""A finished simulation as plain data: to keep, to compare, to draw."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from scheduler.planner import Decision, Hold, Preempt
from scheduler.simulator.lives import Outcome
from scheduler.simulator.measures import measure, percentile, size_of
from scheduler.simulator.simulation import Result

VERSION = 1
CURVE_POINTS = 200
DERIVED = ("completion_s", "wait_s", "fraction", "unfairness")

Record = dict[str, Any]
"""A run as JSON: version, measures, samples over time, curves, figures by size and tenant."""


class UnreadableRecordError(ValueError):
    """A kept run that is not one, or one of another version."""


def record(result: Result) -> Record:
    """Everything that a comparison needs; the same bytes for the same run."""
    done = [each for each in result.outcomes if each.finished_at is not None]
    return {
        "version": VERSION,
        "name": result.policy.name,
        "measures": measure(result),
        "costs": asdict(result.costs),
        "samples": [_sample(each, result) for each in result.samples],
        "curves": {
            "completion_s": curve([each.completion_s for each in done]),
            "wait_s": curve([each.wait_s for each in done]),
            "slowdown": curve(
                [each.completion_s / each.duration_s for each in done if each.duration_s]
            ),
        },
    }


def curve(values: Iterable[float]) -> list[float]:
    """The values at evenly spaced parts of all, smallest to largest: a distribution to draw."""
    ordered = sorted(values)
    if not ordered:
        return []
    return [percentile(ordered, step / (CURVE_POINTS - 1)) for step in range(CURVE_POINTS)]


def outcomes_csv(outcomes: Sequence[Outcome]) -> str:
    """One line a job, with times in seconds from the first submission."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [each.name for each in fields(Outcome)]
    writer.writerow([*names, *DERIVED, "size"])
    for each in outcomes:
        derived = (
            ["" for _ in DERIVED]
            if each.finished_at is None
            else [getattr(each, name) for name in DERIVED]
        )
        writer.writerow([*(getattr(each, name) for name in names), *derived, size_of(each)])
    return text.getvalue()


def decision_row(at: float, decision: Decision) -> tuple[str, ...]:
    """One decision as cells: moment, what, job, where, reason, for whom."""
    seats = getattr(decision, "seats", ())
    where = " ".join(f"{seat.node}:{'+'.join(seat.devices)}" for seat in seats)
    beneficiary = "" if isinstance(decision, Hold) else getattr(decision, "beneficiary", "") or ""
    what = type(decision).__name__.lower()
    if isinstance(decision, Preempt):
        where = str(decision.remedy)
    return f"{at:.6f}", what, decision.job, where, str(decision.why.reason), beneficiary


def keep(result: Result, folder: Path) -> Record:
    """Write ``run.json`` and ``jobs.csv`` into a folder, and answer the record."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = record(result)
    text = json.dumps(kept, indent=1, sort_keys=True)
    (folder / "run.json").write_text(text + "\n", encoding="utf-8")
    (folder / "jobs.csv").write_text(outcomes_csv(result.outcomes), encoding="utf-8")
    return kept


def read_record(path: Path) -> Record:
    """A run that was kept; raises ``UnreadableRecordError``."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnreadableRecordError(f"{path}: {error}") from None
    if not isinstance(kept, Mapping) or kept.get("version") != VERSION:
        raise UnreadableRecordError(f"{path} is no run of version {VERSION}")
    return dict(kept)


def _sample(sample: Any, result: Result) -> list[float]:
    start = result.samples[0].at if result.samples else 0.0
    return [
        sample.at - start,
        sample.capacity,
        sample.used,
        round(sample.computing, 6),
        sample.idle_in_part,
        sample.waiting,
        sample.wanted,
    ]
