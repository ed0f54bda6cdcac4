"""What a trace says: who asked for what and when, and which of its lines could not be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from scheduler.planner import Remedy

GIGABYTE = 10**9


class UnreadableTraceError(ValueError):
    """A trace that cannot be used: no known format, or a broken line where none is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One job of a trace. Times are seconds, sizes are bytes."""

    id: str
    submitted_at: float
    """Seconds on the trace's own clock; the simulation starts at the first one."""
    duration_s: float
    """Seconds of work when all devices are there, at the GPU-proportional share of the node."""
    gpus: int = 1
    """Whole devices; 0 for a task that needs none."""
    share: float = 1.0
    """Part of one device that is really used, 0 to 1; below 1 only when ``gpus`` is 1."""
    replicas: int | None = None
    """Containers the devices are split over; ``None``: as few as the fleet's nodes allow."""
    fewest_gpus: int | None = None
    """Elastic lower bound in devices; ``None``: rigid."""
    tenant: str = "everyone"
    tier: str = ""
    device_kinds: tuple[str, ...] = ()
    """Kinds it may run on; empty: any."""
    partition: str = ""
    cpus: float = 0.0
    """CPUs of the whole job."""
    memory: int = 0
    """Host memory of the whole job."""
    image: int | None = None
    """Size of its checkpoint; ``None``: from the device count, by the physics."""
    remedy: Remedy = Remedy.TRANSPARENT
    expected_s: float | None = None
    """What its user said it would take; ``None``: nothing said."""
    priority: float = 0.0
    model: str = ""
    """Which sensitivity matrix it follows; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenLine:
    """A line that was left out, with its number in the file and why."""

    number: int
    why: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Arrivals by submission time, ties by their row in the file."""

    name: str
    arrivals: tuple[Arrival, ...]
    broken: tuple[BrokenLine, ...] = ()
    left_out: int = 0
    """Whole lines that are no job for a device (CPU-only rows, rows without a run)."""
    unused: tuple[str, ...] = ()
    """Columns of a file of one's own that mean nothing here; perhaps misspelt."""

    @property
    def device_seconds(self) -> float:
        """Work in the trace, in device-seconds."""
        return sum(each.gpus * each.duration_s for each in self.arrivals)

    @property
    def span_s(self) -> float:
        """Seconds from the first submission to the last."""
        if not self.arrivals:
            return 0.0
        return self.arrivals[-1].submitted_at - self.arrivals[0].submitted_at

    def first(self, count: int) -> Trace:
        """The same trace cut after ``count`` arrivals."""
        return replace(self, arrivals=self.arrivals[:count])

    def at_load(self, load: float, devices: int) -> Trace:
        """The same jobs, their arrivals drawn together or apart so that they ask for ``load``.

        ``load`` is device-seconds asked over device-seconds there are, between first and last
        submission. Raises ``ValueError`` when the trace has no span.
        """
        if not self.span_s:
            raise ValueError("a trace whose jobs all arrive at once has no load to change")
        factor = self.device_seconds / (load * devices) / self.span_s
        start = self.arrivals[0].submitted_at
        moved = tuple(
            replace(each, submitted_at=start + (each.submitted_at - start) * factor)
            for each in self.arrivals
        )
        return replace(self, arrivals=moved)


def in_order(
    name: str,
    arrivals: Iterable[Arrival],
    broken: Iterable[BrokenLine] = (),
    left_out: int = 0,
    unused: Iterable[str] = (),
) -> Trace:
    """A trace whose arrivals are sorted by submission; ties keep the order of their rows."""
    return Trace(
        name=name,
        arrivals=tuple(sorted(arrivals, key=lambda each: each.submitted_at)),
        broken=tuple(broken),
        left_out=left_out,
        unused=tuple(unused),
    )
