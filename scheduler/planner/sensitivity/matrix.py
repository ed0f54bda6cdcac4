"""How fast a job runs with so many CPUs and so much memory, relative to its GPUs' share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

NEAR_BEST = 0.99
"""A point this close to the best pace is as good as the best."""


@dataclass(frozen=True, slots=True)
class Point:
    """An amount of host resources for one device of a job: CPUs and bytes."""

    cpus: float
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Measured paces by CPUs and memory for each device; 1 is the GPU-proportional share's."""

    cpus: tuple[float, ...]
    """Measured amounts, rising."""
    memory: tuple[float, ...]
    """Measured amounts in bytes, rising."""
    paces: tuple[tuple[float, ...], ...]
    """One row for each amount of CPUs, one column for each of memory."""

    def __post_init__(self) -> None:
        if len(self.paces) != len(self.cpus) or any(
            len(row) != len(self.memory) for row in self.paces
        ):
            raise ValueError("a sensitivity matrix needs one pace for each CPU and memory amount")

    def pace(self, at: Point) -> float:
        """The pace at the largest measured point within ``at``; 0 below the smallest."""
        row = bisect_right(self.cpus, at.cpus + 1e-9) - 1
        column = bisect_right(self.memory, at.memory + 1e-9) - 1
        return self.paces[row][column] if row >= 0 and column >= 0 else 0.0

    def points(self) -> Iterator[tuple[Point, float]]:
        """Every measured point with its pace."""
        for cpus, row in zip(self.cpus, self.paces, strict=True):
            for memory, pace in zip(self.memory, row, strict=True):
                yield Point(cpus, memory), pace

    def best(self) -> Point:
        """The smallest point whose pace is near the best: what the job would ask for."""
        most = max(max(row) for row in self.paces)
        return min(
            (point for point, pace in self.points() if pace >= NEAR_BEST * most),
            key=lambda point: (point.cpus, point.memory),
        )


def matrix_of(paces: Mapping[tuple[float, float], float]) -> Matrix:
    """The matrix of measured paces by (CPUs, memory); raises ``ValueError`` when it has holes."""
    cpus = tuple(sorted({cpus for cpus, _ in paces}))
    memory = tuple(sorted({memory for _, memory in paces}))
    if len(paces) != len(cpus) * len(memory):
        raise ValueError(
            f"{len(paces)} points do not fill {len(cpus)} CPU by {len(memory)} memory amounts"
        )
    return Matrix(
        cpus=cpus, memory=memory, paces=tuple(tuple(paces[c, m] for m in memory) for c in cpus)
    )
