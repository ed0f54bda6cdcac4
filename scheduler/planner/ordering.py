"""Who is next: the waiting jobs in lines of those that are alike, and the order of the lines.

Jobs of one line differ only in who came first. If the first finds no place, neither do the others,
so a cycle looks at lines, not at jobs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import NamedTuple

from scheduler.planner.claims import Claim, Key, is_kept
from scheduler.planner.fairness import Account, Share
from scheduler.planner.ledger import NEVER
from scheduler.planner.needs import need_of, sizes
from scheduler.planner.policy import Backfill, Ordering, Policy
from scheduler.planner.promises import behind, remaining, worked
from scheduler.planner.snapshot import Job, JobId, Remedy, Tier

NO_TIER = Tier(id="", rank=0)  # type: ignore[arg-type]


SHIFTING = (Ordering.TIERS, Ordering.FAIR)
"""Orderings in which what one is given changes the place of others."""
SLACK_S = 1.0
"""So long before a debt begins or reaches the next step a place is worked out anew."""


class Place(NamedTuple):
    """Where a job stands in the order of tiers, but for what its tenant uses."""

    job: Job
    until: float
    """Before this moment it stays so."""
    first: Key
    short: bool
    """Whether its promise is being broken."""


class Line:
    """Waiting jobs that are alike, in order."""

    __slots__ = ("account", "at", "claim", "entries", "need", "place", "signature", "sizes", "tier")

    def __init__(self, signature: Key, claim: Claim, account: Account | None) -> None:
        self.signature = signature
        self.claim = claim
        self.account = account
        self.tier = claim.tier
        self.need = claim.need
        self.sizes = claim.sizes
        self.entries: list[tuple[Key, Job]] = []
        self.at = 0
        """How many of its jobs this cycle has placed."""
        self.place: Place | None = None

    @property
    def job(self) -> Job:
        """The job whose turn it is."""
        return self.entries[self.at][1]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of devices that suit it."""
        return self.claim.kinds


class Queue:
    """All lines. What a line is depends on the policy: what it ignores does not part jobs."""

    def __init__(self, policy: Policy, *, silent: bool) -> None:
        self.policy = policy
        self.silent = silent
        """Whether no quota says anything: then it does not matter to a claim whose it is."""
        self.claims: dict[Key, Claim] = {}
        self.lines: dict[Key, Line] = {}
        self.places: dict[JobId, tuple[Line, Key]] = {}
        self._advanced: list[Line] = []
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
            del line.claim.lines[line]
            if not line.claim.lines:
                del self.claims[line.claim.signature]
        if key == first:
            self._reorder(line, first)

    def advance(self, line: Line) -> bool:
        """Let the next job of a line have its turn in this cycle; false if there is none."""
        line.at += 1
        self._advanced.append(line)
        return line.at < len(line.entries)

    def rewind(self) -> None:
        """Begin a cycle: it is the turn of the first job of each line."""
        for line in self._advanced:
            line.at = 0
        self._advanced.clear()

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
            claim = self._claim(job, account, tier)
            line = self.lines[signature] = Line(signature, claim, account)
            claim.lines[line] = None
        return line

    def _claim(self, job: Job, account: Account | None, tier: Tier) -> Claim:
        kept = job.id if is_kept(job) else ""
        whose = account is not None if self.silent else account
        need, legal = need_of(job), sizes(job)
        signature = (tier.id, whose, need, legal, job.asked_devices, kept)
        claim = self.claims.get(signature)
        if claim is None:
            claim = self.claims[signature] = Claim(signature, tier, need, legal, kept=bool(kept))
        return claim

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


def standing(line: Line, policy: Policy, now: float, share: Share) -> Key:
    """The place of a line among all lines at this moment: that of the job whose turn it is."""
    key, job = line.entries[line.at]
    if policy.ordering is Ordering.FAIR:
        return (share, key)
    if policy.ordering is not Ordering.TIERS:
        return key
    place = line.place
    if place is None or place.job is not job or now >= place.until:
        place = _place(line, job, policy, now)
    return (*place.first, share, key)


def _place(line: Line, job: Job, policy: Policy, now: float) -> Place:
    """Work out the place of a line, but for what its tenant uses."""
    account, entitled, until = line.account, False, NEVER
    if account is not None and not account.neutral:
        count, until = line.sizes[0].devices, now
        entitled = any(account.entitled(kind, count) for kind in line.kinds)
    rank, promise = (line.tier.rank, line.tier.promise) if policy.tiers else (0, 0.0)
    debt = behind(job, promise, now) if promise > 0 else 0.0
    step = max(0.0, debt) // policy.owed_step_s
    if promise > 0:
        # While it waits, what it is owed grows by its promise each second.
        left = (step + 1) * policy.owed_step_s - debt if debt > 0 else -debt
        until = min(until, now + left / promise - SLACK_S)
    first = (not entitled, -rank, -job.priority, -step)
    line.place = place = Place(job, until, first, debt > 0)
    return place
