"""How what was asked of jobs ended, and how long they stood still: what a report is made of."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

SKEW_S = 1.0
"""What is asked is written down here after the portal has begun with it."""
STOOD_S = 2.0
"""Shorter than this is no standstill but a busy machine."""
KINDS = {"migrate": "migrate", "resize": "resize", "pause": "pause"}
"""The receipt that an act leads to."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """One operation that the portal has taken."""

    job: int
    act: str
    told: dict[str, Any] = field(default_factory=dict)
    at: float
    """Wall clock, seconds since 1970."""

    def __str__(self) -> str:
        words = [f"job {self.job} {self.act}", *(f"{k} {v}" for k, v in self.told.items())]
        return f"{clock(self.at)} {' '.join(words)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What became of it."""

    asked: Asked
    how: str
    """``done``, ``called off``, ``under way``, or ``nothing`` where no trace of it is left."""
    why: str = ""
    seconds: float | None = None

    def __str__(self) -> str:
        took = "" if self.seconds is None else f" after {self.seconds:.1f} s"
        return f"{self.asked}: {self.how}{took}{': ' if self.why else ''}{self.why}"


def endings(
    asked: Sequence[Asked], receipts: Sequence[dict[str, Any]], cuts: Sequence[dict[str, Any]]
) -> list[Ended]:
    """Answer how each operation on one job ended, by the job's receipts and checkpoints.

    A trace belongs to the newest operation of its kind before it; what was asked in vain, such as
    another size that it has already, and what was asked again before it began, leaves none.
    """
    traces = (*map(_of_receipt, receipts), *map(_of_cut, cuts))
    theirs: dict[Asked, _Trace] = {}
    for trace in sorted(traces, key=lambda trace: trace.began):
        before = [
            each
            for each in asked
            if KINDS.get(each.act, each.act) == trace.kind and each.at - SKEW_S <= trace.began
        ]
        newest = max(before, key=lambda each: each.at, default=None)
        if newest is not None:
            theirs.setdefault(newest, trace)
    return [_ended(each, theirs.get(each)) for each in sorted(asked, key=lambda each: each.at)]


def _ended(asked: Asked, trace: _Trace | None) -> Ended:
    if KINDS.get(asked.act, asked.act) not in {*KINDS.values(), "checkpoint"}:
        return Ended(asked=asked, how="done")
    if trace is None:
        return Ended(asked=asked, how="nothing")
    seconds = max(0.0, trace.ended - asked.at) if trace.ended else None
    return Ended(asked=asked, how=trace.how, why=trace.why, seconds=seconds)


@dataclass(slots=True, kw_only=True)
class _Trace:
    kind: str
    began: float
    ended: float = 0.0
    how: str
    why: str = ""


def _of_receipt(told: dict[str, Any]) -> _Trace:
    # A pause is done once the job has left; it goes on whenever it is resumed.
    paused = told["kind"] == "pause"
    ended = _seconds(told["left_at"]) if paused else told["resumed_at"] or 0.0
    how = "called off" if told["called_off"] else "done" if ended else "under way"
    began = _seconds(told["began_at"])
    return _Trace(kind=told["kind"], began=began, ended=ended, how=how, why=told["called_off"])


def _of_cut(told: dict[str, Any]) -> _Trace:
    how = {"committed": "done", "discarded": "called off"}.get(told["state"], "under way")
    # The cut of a move is told by its receipt.
    kind = "checkpoint" if told["periodic"] else "cut"
    ended = _seconds(told["committed_at"])
    began = _seconds(told["began_at"])
    return _Trace(kind=kind, began=began, ended=ended, how=how, why=told["error"])


def _seconds(moment: str | None) -> float:
    return datetime.fromisoformat(moment).timestamp() if moment else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """A job that did not compute for a while, and what its receipts say of that time."""

    job: int
    began: float
    seconds: float
    why: tuple[str, ...]

    def __str__(self) -> str:
        why = ", ".join(self.why) or "no receipt"
        return f"{clock(self.began)} job {self.job} stood for {self.seconds:.1f} s: {why}"


def standstills(
    job: int, times: Sequence[float], receipts: Sequence[dict[str, Any]]
) -> list[Stood]:
    """Answer when a job stood still, by the times at which it computed; pauses are no such time."""
    spans = [
        (_seconds(told["began_at"]), told["resumed_at"] or float("inf"), told) for told in receipts
    ]
    found = []
    for before, after in pairwise(sorted(times)):
        if after - before < STOOD_S:
            continue
        there = [told for began, ended, told in spans if began < after and ended > before]
        if any(told["kind"] == "pause" and not told["called_off"] for told in there):
            continue
        why = tuple(f"{told['kind']}{' called off' * bool(told['called_off'])}" for told in there)
        found.append(Stood(job=job, began=before, seconds=after - before, why=why))
    return found


def clock(moment: float) -> str:
    """Answer the time of day, to be found in a log."""
    return time.strftime("%H:%M:%S", time.localtime(moment))
