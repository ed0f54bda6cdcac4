"""Made-up traces: arrivals by a law, sizes and durations like those of a real trace.

``synthetic:poisson,jobs=1000,load=0.9`` on the command line is one of these.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scheduler.simulator.arrivals import Arrival, Trace, UnreadableTraceError, in_order

DAY = 86_400.0
PATTERNS = ("poisson", "diurnal", "bursty")

DEFAULT_SHAPES: tuple[tuple[int, float, float], ...] = (
    (1, 0.70, 2400.0),
    (2, 0.08, 3600.0),
    (4, 0.08, 5400.0),
    (8, 0.09, 7200.0),
    (16, 0.04, 14400.0),
    (32, 0.01, 28800.0),
)
"""Devices, how frequent, median seconds: the mix of a shared research fleet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a synthetic trace is like. Times are seconds."""

    pattern: str = "poisson"
    jobs: int = 1000
    load: float = 0.9
    """Device-seconds asked over those there are, on average."""
    devices: int = 128
    """The fleet the load is meant for."""
    tenants: int = 4
    swing: float = 0.6
    """``diurnal``: how far the rate rises and falls around its mean, 0 to 1."""
    burst: int = 20
    """``bursty``: mean number of jobs that come together."""
    spread: float = 1.4
    """Standard deviation of the logarithm of the durations."""


def synthetic(recipe: Recipe, *, seed: int, like: Trace | None = None) -> Trace:
    """Draw a trace. With ``like``, sizes and durations are drawn together from that trace's jobs.

    Raises ``UnreadableTraceError`` for a pattern that does not exist.
    """
    if recipe.pattern not in PATTERNS:
        raise UnreadableTraceError(
            f"{recipe.pattern!r} is no pattern; there are: {', '.join(PATTERNS)}"
        )
    die = random.Random(f"{seed}/{recipe.pattern}")
    shapes = [_shape(recipe, die, like) for _ in range(recipe.jobs)]
    work = sum(gpus * duration for gpus, duration in shapes)
    span = work / (recipe.load * recipe.devices)
    moments = _moments(recipe, die, span)
    return in_order(
        f"{recipe.pattern} {recipe.jobs}",
        (
            Arrival(
                id=str(number),
                submitted_at=next(moments),
                duration_s=duration,
                gpus=gpus,
                tenant=f"tenant-{die.randrange(recipe.tenants) + 1}",
            )
            for number, (gpus, duration) in enumerate(shapes)
        ),
    )


def recipe_named(text: str) -> Recipe:
    """The recipe in ``pattern,key=value,...``; raises ``UnreadableTraceError``."""
    pattern, *settings = text.split(",")
    recipe = Recipe(pattern=pattern or "poisson")
    changes: dict[str, Any] = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        present = getattr(recipe, key, None)
        if key == "pattern" or not isinstance(present, int | float):
            raise UnreadableTraceError(f"{key!r} is nothing that a synthetic trace has")
        try:
            changes[key] = type(present)(value)
        except ValueError:
            raise UnreadableTraceError(f"{key} cannot be {value!r}") from None
        if not 0 < changes[key] < float("inf") and key != "swing":
            raise UnreadableTraceError(f"{key} must be more than 0, not {value}")
    return replace(recipe, **changes)


def dressed(
    trace: Trace,
    *,
    seed: int,
    tiers: Mapping[str, float] | None = None,
    elastic: float = 0.0,
    noise: float | None = None,
    models: Sequence[str] = (),
) -> Trace:
    """The trace with what it does not say drawn by a die.

    ``tiers`` gives the share of each service tier; ``elastic`` the share of the jobs of several
    devices that may shrink to a quarter; ``noise`` the standard deviation of the logarithm by which
    users misjudge the duration (``None``: they know it); ``models`` what those without one train.
    """
    die = random.Random(f"{seed}/dressed")
    names, weights = zip(*sorted((tiers or {"": 1.0}).items()), strict=True)
    arrivals = []
    for each in trace.arrivals:
        tier = die.choices(names, weights)[0]
        shrinks = die.random() < elastic and each.gpus > 1
        model = die.choice(models) if models and not each.model else each.model
        said = each.duration_s * math.exp(die.gauss(0, noise)) if noise else each.expected_s
        arrivals.append(
            replace(
                each,
                tier=tier or each.tier,
                fewest_gpus=max(1, each.gpus // 4) if shrinks else each.fewest_gpus,
                expected_s=said,
                model=model,
            )
        )
    return replace(trace, arrivals=tuple(arrivals))


def _shape(recipe: Recipe, die: random.Random, like: Trace | None) -> tuple[int, float]:
    if like is not None:
        model = die.choice(like.arrivals)
        return model.gpus, model.duration_s
    gpus, _, median = die.choices(DEFAULT_SHAPES, [share for _, share, _ in DEFAULT_SHAPES])[0]
    return gpus, round(median * math.exp(die.gauss(0, recipe.spread)), 3)


def _moments(recipe: Recipe, die: random.Random, span: float) -> Iterator[float]:
    """Moments of arrival whose mean rate fills the span with the recipe's number of jobs."""
    rate = recipe.jobs / span if span else 1.0
    at = 0.0
    while True:
        if recipe.pattern == "bursty":
            at += die.expovariate(rate / recipe.burst)
            for _ in range(1 + int(die.expovariate(1 / recipe.burst))):
                yield round(at, 3)
            continue
        if recipe.pattern == "poisson":
            at += die.expovariate(rate)
            yield round(at, 3)
            continue
        while True:  # thinning: draw at the highest rate, keep as often as the present rate allows
            at += die.expovariate(rate * (1 + recipe.swing))
            present = 1 + recipe.swing * math.sin(2 * math.pi * at / DAY)
            if die.random() < present / (1 + recipe.swing):
                break
        yield round(at, 3)
