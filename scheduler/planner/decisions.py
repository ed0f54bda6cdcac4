"""What one cycle answers: at most one decision a job, each with a named reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import JobId, Remedy, Seat


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """A named reason with the numbers its sentence needs."""

    reason: Reason
    numbers: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.reason.sentence(self.numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Start (or restore) a waiting job on these seats."""

    job: JobId
    seats: tuple[Seat, ...]
    why: Why
    after: tuple[JobId, ...] = ()
    """Jobs that must have left before it can start: preempted, moved or shrunk in this plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """Take a running job off its devices and queue it again."""

    job: JobId
    remedy: Remedy
    why: Why
    beneficiary: JobId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrate:
    """Move a running job to other devices, size unchanged."""

    job: JobId
    seats: tuple[Seat, ...]
    why: Why
    beneficiary: JobId | None = None
    after: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Spread the same replicas over fewer or more devices."""

    job: JobId
    seats: tuple[Seat, ...]
    why: Why
    beneficiary: JobId | None = None
    after: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Leave a waiting job waiting."""

    job: JobId
    why: Why


Decision = Place | Preempt | Migrate | Resize | Hold
Plan = tuple[Decision, ...]
