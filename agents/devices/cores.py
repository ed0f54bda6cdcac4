"""Lists of cores as the kernel writes them: ``0-2,5``."""

from __future__ import annotations

import os
from collections.abc import Iterable


def every_core() -> tuple[int, ...]:
    """The cores that this process may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


def parse_cores(text: str) -> tuple[int, ...]:
    """Read ``0-2,5`` as (0, 1, 2, 5). Raises ``ValueError``."""
    cores: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        start, end = int(first), int(last or first)
        if start < 0 or end < start:
            raise ValueError(f"{part!r} is not a range of cores")
        cores.update(range(start, end + 1))
    return tuple(sorted(cores))


def format_cores(cores: Iterable[int]) -> str:
    """Write (0, 1, 2, 5) as ``0-2,5``."""
    ranges: list[list[int]] = []
    for core in sorted(set(cores)):
        if ranges and core == ranges[-1][1] + 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in ranges)
