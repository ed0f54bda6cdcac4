"""Optimistic profiling: measure along the CPUs with all memory, predict the memory axis.

With a cache that keeps a fixed part of the data set, an epoch reads the rest from storage; so the
pace at less memory is the lower of what the CPUs allow and of what the storage delivers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.planner.sensitivity.matrix import Matrix


def predict(
    measured: Mapping[float, float],
    *,
    memory: Sequence[float],
    working_memory: float,
    dataset: float,
    epoch_s: float,
    storage: float,
) -> Matrix:
    """The whole matrix from paces at full memory.

    ``measured`` are paces by CPUs, relative to the proportional share. ``dataset`` and
    ``working_memory`` (what the job needs besides its cache) are bytes, ``epoch_s`` the seconds of
    an epoch at pace 1, ``storage`` bytes a second. Raises ``ValueError`` for no measurement.
    """
    if not measured:
        raise ValueError("at least one amount of CPUs must be measured")
    cpus = tuple(sorted(measured))
    amounts = tuple(sorted(memory))

    def limit(amount: float) -> float:
        if amount < working_memory:
            return 0.0
        missing = dataset - min(dataset, amount - working_memory)
        return epoch_s / (missing / storage) if missing > 0 else float("inf")

    return Matrix(
        cpus=cpus,
        memory=amounts,
        paces=tuple(tuple(min(measured[c], limit(m)) for m in amounts) for c in cpus),
    )
