"""Which amounts of CPUs are worth measuring: few, where the pace still changes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

WORTH_MEASURING = 0.10
"""Between two measured amounts that differ by less, the middle one is not measured."""
LESS = (0.25, 0.5, 0.75)
MORE = (1.5, 2.0)
LEAST = 0.05
"""CPUs below which nothing is measured."""


def less(share: float) -> list[float]:
    """The share and the smaller amounts that may be measured, rising."""
    smaller = [round(share * part, 4) for part in LESS if share * part >= LEAST]
    return [*smaller, share]


def more(share: float, most: float) -> list[float]:
    """The share and the larger amounts that may be measured, up to ``most``."""
    return [share, *(round(share * part, 4) for part in MORE if share * part <= most + 1e-9)]


def next_amount(measured: Mapping[float, float], amounts: Sequence[float]) -> float | None:
    """Which amount of CPUs to measure next; ``None`` when the others can be told from these.

    The ends first; then the middle of the widest stretch over which the pace still changes.
    """
    todo = [amount for amount in sorted(amounts) if amount not in measured]
    if not todo:
        return None
    for end in (max(amounts), min(amounts)):
        if end not in measured:
            return end
    known = sorted(amount for amount in measured if amount in amounts)
    stretches = [
        (abs(measured[high] - measured[low]), low, high)
        for low, high in pairwise(known)
        if any(low < amount < high for amount in todo)
    ]
    change, low, high = max(stretches)
    if change <= WORTH_MEASURING * max(measured[amount] for amount in known):
        return None
    between = [amount for amount in todo if low < amount < high]
    return between[len(between) // 2]
