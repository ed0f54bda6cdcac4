"""Who is next: the waiting jobs in lines of those that are alike, and the order of the lines.

Jobs of one line differ only in who came first. If the first finds no place, neither do the others,
so a cycle looks at lines, not at jobs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import NamedTuple

from scheduler.planner.decisions import Why
from scheduler.planner.fairness import Account
from scheduler.planner.fleet import Pool
from scheduler.planner.needs import Need, Size, need_of, sizes
from scheduler.planner.policy import Backfill, Ordering, Policy
from scheduler.planner.promises import owed, remaining, worked
from scheduler.planner.snapshot import Job, JobId, Phase, Remedy, Tier

Key = tuple[object, ...]
NO_SHARE: tuple[float, ...] = ()
NO_TIER = Tier(id="", rank=0)  # type: ignore[arg-type]


SHIFTING = (Ordering.TIERS, Ordering.FAIR)
"""Orderings in which what one is given changes the place of others."""


class Moment(NamedTuple):
    """When a search for a job found nobody to ask: while all of it holds, it finds nobody."""

    epoch: int
    mark: int
    job: JobId
    short: bool
    """Whether its promise was being broken."""
    open: int
    """The largest size that was open to it, in devices."""


class Line:
    """Waiting jobs that are alike, in order."""

    __slots__ = (
        "account", "at", "blocked_at", "entries", "helpless", "kinds", "looked_at", "need",
        "signature", "sizes", "structural", "tier", "where",
    )  # fmt: skip

    def __init__(self, signature: Key, job: Job, account: Account | None, tier: Tier) -> None:
        self.signature = signature
        self.account = account
        self.tier = tier
        self.need: Need = need_of(job)
        self.sizes: tuple[Size, ...] = sizes(job)
        self.entries: list[tuple[Key, Job]] = []
        self.kinds: tuple[str, ...] = ()
        self.where: dict[Pool, int] | None = None
        """The usable bins that suit it; ``None``: all that have devices of its kinds."""
        self.at = 0
        """How many of its jobs this cycle has placed."""
        self.blocked_at = -1
        """The state of the fleet at which its first job found no place."""
        self.helpless: Moment | None = None
        """The moment at which its first job found nobody to ask either."""
        self.looked_at = -1
        """For which state of the nodes and quotas it is known whether its jobs can ever run."""
        self.structural: Why | None = None
        """Why they can never run."""

    @property
    def job(self) -> Job:
        """The job whose turn it is."""
        return self.entries[self.at][1]

    @property
    def kept(self) -> bool:
        """Whether its job must come back to where it was frozen."""
        return bool(self.entries) and _kept(self.entries[0][1])


class Queue:
    """All lines. What a line is depends on the policy: what it ignores does not part jobs."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.lines: dict[Key, Line] = {}
        self.places: dict[JobId, tuple[Line, Key]] = {}
        self.shifting = policy.ordering in SHIFTING
        self.ordered: list[tuple[Key, Line]] = []
        """The lines by the first of their jobs, unless their order shifts."""

    def fill(self, jobs: Iterable[tuple[Job, Account | None, Tier]]) -> None:
        """Line up many jobs at once."""
        touched: dict[Key, Line] = {}
        for job, account, tier in jobs:
            line = self._line(job, account, tier)
            key = age(job, self.policy)
            line.entries.append((key, job))
            self.places[job.id] = (line, key)
            touched[line.signature] = line
        for line in touched.values():
            line.entries.sort()
        if not self.shifting:
            self.ordered = sorted((line.entries[0][0], line) for line in self.lines.values())

    def add(self, job: Job, account: Account | None, tier: Tier) -> None:
        """Line up one job."""
        line = self._line(job, account, tier)
        key = age(job, self.policy)
        first = line.entries[0][0] if line.entries else None
        insort(line.entries, (key, job))
        self.places[job.id] = (line, key)
        if first is None or key < first:
            self._reorder(line, first)

    def remove(self, id_: JobId) -> None:
        """Take a job out of its line. Raises KeyError if it does not wait."""
        line, key = self.places.pop(id_)
        first = line.entries[0][0]
        del line.entries[bisect_left(line.entries, (key,))]
        if not line.entries:
            del self.lines[line.signature]
        if key == first:
            self._reorder(line, first)

    def _reorder(self, line: Line, first: Key | None) -> None:
        """Put a line in its place whose first job was another until now, or of which it is new."""
        if self.shifting:
            return
        if first is not None:
            del self.ordered[bisect_left(self.ordered, (first,))]
        if line.entries:
            insort(self.ordered, (line.entries[0][0], line))

    def _line(self, job: Job, account: Account | None, tier: Tier) -> Line:
        signature = self._signature(job)
        line = self.lines.get(signature)
        if line is None:
            line = self.lines[signature] = Line(signature, job, account, tier)
        return line

    def _signature(self, job: Job) -> Key:
        policy = self.policy
        if policy.pool:
            fair = policy.ordering in (Ordering.FAIR, Ordering.TIERS) or policy.quotas
            return (job.replicas * job.gpus_per_replica, job.tenant if fair else "")
        shape: Key = (
            job.tenant, job.tier, job.replicas, job.gpus_per_replica, job.fewest_devices,
            job.device_kind, job.device_memory, job.cpus_per_replica, job.memory_per_replica,
            job.partition, job.has_image and job.remedy is Remedy.TRANSPARENT, job.asked_devices,
        )  # fmt: skip
        if policy.backfill is Backfill.EASY:
            shape = (*shape, job.expected_s)
        served = job.delivered > 0 and policy.ordering is Ordering.TIERS
        if served or job.avoid_nodes or job.wanted_nodes or job.kept_on:
            # Debts of jobs that ran before grow at different speeds: each stands alone.
            return (*shape, job.id)
        return shape


def _kept(job: Job) -> bool:
    return job.remedy is Remedy.PAUSE and bool(job.kept_on) and job.phase is Phase.WAITING


def age(job: Job, policy: Policy) -> Key:
    """The order within a line; it does not change while the job waits."""
    tie = (job.submitted_at, len(job.id), job.id)
    ordering = policy.ordering
    if ordering is Ordering.SJF:
        length = float("inf") if job.expected_s is None else job.expected_s
        return (-job.priority, length, *tie)
    if ordering in (Ordering.SRTF, Ordering.SRSF, Ordering.LAS):
        return rank_in_time(job, policy, job.measured_at or 0.0)
    return (-job.priority, *tie)


def rank_in_time(job: Job, policy: Policy, now: float) -> Key:
    """The place of a job, waiting or running, in an ordering that looks at work done or left."""
    tie = (job.submitted_at, len(job.id), job.id)
    if policy.ordering is Ordering.SRTF:
        return (-job.priority, remaining(job, now), *tie)
    if policy.ordering is Ordering.SRSF:
        return (-job.priority, remaining(job, now) * job.devices, *tie)
    if policy.ordering is Ordering.LAS:
        service = worked(job, now) * job.devices
        step = bisect_left(policy.las_steps, service)
        return (-job.priority, step, *tie)
    return age(job, policy)


def standing(line: Line, policy: Policy, now: float) -> Key:
    """The place of a line among all lines at this moment: that of the job whose turn it is."""
    key, job = line.entries[line.at]
    account = line.account
    if policy.ordering is Ordering.FAIR:
        return (account.share(policy.half_life_s) if account else (), key)
    if policy.ordering is not Ordering.TIERS:
        return key
    entitled, share = False, NO_SHARE
    if account is not None:
        share = account.share(policy.half_life_s)
        if not account.neutral:
            count = line.sizes[0].devices
            entitled = any(account.entitled(kind, count) for kind in line.kinds)
    rank, promise = (line.tier.rank, line.tier.promise) if policy.tiers else (0, 0.0)
    step = owed(job, promise, now) // policy.owed_step_s if promise > 0 else 0.0
    return (not entitled, -rank, -job.priority, -step, share, key)
