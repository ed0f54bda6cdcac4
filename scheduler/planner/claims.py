"""What waiting jobs ask for and by which right: what is refused to one is refused to all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scheduler.planner.decisions import Why
from scheduler.planner.fleet import Pool
from scheduler.planner.needs import Need, Size
from scheduler.planner.snapshot import Job, JobId, Phase, Remedy, Tier

if TYPE_CHECKING:
    from scheduler.planner.ordering import Line

Key = tuple[object, ...]


class Moment(NamedTuple):
    """When a search found nobody to ask: while all of it holds, it finds nobody."""

    epoch: int
    mark: int
    job: JobId
    """For whom it was."""
    place: Key
    """Its place in the order, where that gives a right; a later one has no more rights."""
    short: bool
    """Whether its promise was being broken."""
    gain: float
    """What others may be moved for; who gains less gets no more."""
    open: int
    """The largest size that was open to it, in devices."""


class Claim:
    """Lines that ask for the same, by the same right."""

    __slots__ = (
        "blocked_at", "helpless", "kept", "kinds", "lines", "looked_at", "need", "signature",
        "sizes", "structural", "tier", "where",
    )  # fmt: skip

    def __init__(
        self, signature: Key, tier: Tier, need: Need, legal: tuple[Size, ...], *, kept: bool
    ) -> None:
        self.signature = signature
        self.tier = tier
        self.need = need
        self.sizes = legal
        self.kept = kept
        """Whether it is of one job that must come back to where it was frozen."""
        self.lines: dict[Line, None] = {}
        self.kinds: tuple[str, ...] = ()
        self.where: dict[Pool, int] | None = None
        """The usable bins that suit it; ``None``: all that have devices of its kinds."""
        self.blocked_at = -1
        """The state of the fleet at which a job of it found no place."""
        self.helpless: Moment | None = None
        """The moment at which it found nobody to ask either."""
        self.looked_at = -1
        """For which state of the nodes and quotas it is known whether its jobs can ever run."""
        self.structural: Why | None = None
        """Why they can never run."""


def is_kept(job: Job) -> bool:
    """Whether a waiting job must come back to where it was frozen."""
    return job.remedy is Remedy.PAUSE and bool(job.kept_on) and job.phase is Phase.WAITING
