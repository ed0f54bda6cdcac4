"""Who may be pushed off by whom, and where in the fleet they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scheduler.planner.costs import loss
from scheduler.planner.draft import Draft
from scheduler.planner.fairness import Account
from scheduler.planner.fleet import Bin, Pool
from scheduler.planner.ledger import Held
from scheduler.planner.memory import quiet_until
from scheduler.planner.ordering import Line, rank_in_time
from scheduler.planner.policy import Ordering, Push
from scheduler.planner.promises import fraction, owed
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import Job, JobId, Phase, Tier


class Pusher:
    """A waiting job with what gives it the right to push others off."""

    def __init__(self, line: Line, job: Job, draft: Draft) -> None:
        self.job = job
        self.draft = draft
        self.account: Account | None = line.account
        self.tier: Tier = draft.tier(job)
        self.devices = line.sizes[0].devices
        policy = draft.policy
        self.by_order = policy.push is Push.ORDER
        promise = self.tier.promise if policy.promises else 0.0
        self.short = owed(job, promise, draft.now) > 0
        self.quotas = policy.quotas and line.account is not None
        self._entitled: dict[str, bool] = {}

    def entitled(self, kind: str) -> bool:
        """Whether what it asks for is reserved for its tenant."""
        if not self.quotas or self.account is None:
            return False
        if kind not in self._entitled:
            self._entitled[kind] = self.account.entitled(kind, self.devices)
        return self._entitled[kind]

    def right(self, held: Held) -> Reason | None:
        """By which right it may push off a running job; ``None`` if by none."""
        draft, victim = self.draft, held.job
        if not ripe(draft, victim) or not draft.untouched(victim.id):
            return None
        if self.by_order:
            mine = rank_in_time(self.job, draft.policy, draft.now)
            return Reason.ORDER if mine < rank_in_time(victim, draft.policy, draft.now) else None
        tier = draft.tier(victim)
        if not tier.preemptible:
            return None
        owner = held.account
        borrows = self.quotas and owner is not None and owner.borrows(held.kind)
        if tier.rank < self.tier.rank and self.above(held):
            return Reason.OUTRANKED
        if borrows and owner is not self.account and self.entitled(held.kind):
            return Reason.RECLAIMED
        if self.short and tier.rank == self.tier.rank and tier.promise > 0:
            spare = fraction(victim, draft.now) - tier.promise
            if spare > draft.policy.promise_margin and self.above(held):
                return Reason.PROMISE
        return None

    def above(self, held: Held) -> bool:
        """Whether quotas leave the word to the tiers: the reserved gives way only to its own."""
        owner = held.account
        if not self.quotas or owner is None or owner is self.account or owner.neutral:
            return True
        return owner.borrows(held.kind) or self.entitled(held.kind)


def ripe(draft: Draft, victim: Job) -> bool:
    """Whether a job runs and its protected time is over."""
    return victim.phase is Phase.RUNNING and quiet_until(victim, draft.policy)[0] <= draft.now


def cool(draft: Draft, job: Job) -> bool:
    """Whether a job runs and may be moved or resized again."""
    return job.phase is Phase.RUNNING and quiet_until(job, draft.policy)[1] <= draft.now


def surplus(line: Line, draft: Draft) -> bool:
    """Whether someone has come above a promise by now: time alone may give a right to ask."""
    policy = draft.policy
    if policy.push is Push.ORDER and policy.ordering is Ordering.LAS and policy.preemption:
        return True
    if not policy.promises or not (policy.preemption or draft.memory.elastic):
        return False
    rank = draft.tier(line.job).rank
    if draft.above_promise is None:
        draft.above_promise = {
            tier.rank
            for held in draft.ledger.held.values()
            if (tier := draft.tier(held.job)).promise > 0
            and fraction(held.job, draft.now) - tier.promise > policy.promise_margin
        }
    return any(above <= rank for above in draft.above_promise)


class Yielders:
    """Running jobs that could make room, indexed by where and how much they hold.

    A hint, not a promise: the ledger moves on while it stands, so each is checked when used.
    """

    def __init__(self, held: Iterable[Held]) -> None:
        self.by_bin: dict[Bin, list[Held]] = {}
        self.by_pool: dict[Pool, dict[JobId, Held]] = {}
        self.holding: dict[Pool, list[int]] = {}
        """Per number of devices: the bins where one of them holds just so many."""
        self._most: dict[Pool, int] = {}
        for one in held:
            for part in one.parts:
                bin_ = part.bin
                pool = bin_.pool
                masks = self.holding.get(pool)
                if masks is None:
                    masks = self.holding[pool] = [0] * (pool.size + 1)
                    self.by_pool[pool] = {}
                count = part.mask.bit_count()
                masks[count] |= bin_.bit
                self._most[pool] = self._most.get(pool, 0) + count
                self.by_pool[pool][one.job.id] = one
                found = self.by_bin.get(bin_)
                if found is None:
                    self.by_bin[bin_] = [one]
                else:
                    found.append(one)
        self.options: dict[tuple[Pool, int], list[Option]] = {}

    def most(self, pool: Pool) -> int:
        """Devices of a pool that they hold, at most."""
        return self._most.get(pool, 0)


class Option:
    """Some jobs that together give room for ``gain`` groups."""

    __slots__ = ("gain", "key", "victims")

    def __init__(self, victims: list[Held], gain: int, draft: Draft) -> None:
        self.victims = victims
        self.gain = gain
        self.key = (
            -gain / len(victims),
            max(draft.tier(one.job).rank for one in victims),
            sum(loss(one.job, draft.policy) for one in victims),
            sorted((len(one.job.id), one.job.id) for one in victims),
        )


def yielders(draft: Draft, pusher: Pusher) -> Yielders:
    """Those whom a pusher of this standing might push off; worked out once a cycle."""
    flavour: tuple[object, ...] = (pusher.tier.rank, pusher.short and pusher.tier.promise > 0)
    kinds = sorted({pool.kind for pool in draft.fleet.pools})
    entitled = tuple(kind for kind in kinds if pusher.entitled(kind))
    flavour = ("order",) if pusher.by_order else (*flavour, bool(entitled))
    found = draft.yielders.get(flavour)
    if found is None:
        found = draft.yielders[flavour] = Yielders(_eligible(draft, _roughly(pusher, entitled)))
    return found


def _roughly(pusher: Pusher, entitled: tuple[str, ...]) -> Callable[[Held], bool]:
    """A test that lets through all whom any pusher of this standing may push off."""
    draft, rank = pusher.draft, pusher.tier.rank
    if pusher.by_order:
        return lambda held: True
    same = pusher.short and pusher.tier.promise > 0

    def test(held: Held) -> bool:
        tier = draft.tier(held.job)
        if not tier.preemptible:
            return False
        if tier.rank < rank or (same and tier.rank == rank):
            return True
        owner = held.account
        return bool(entitled) and owner is not None and owner.borrows(held.kind)

    return test


def _eligible(draft: Draft, test: Callable[[Held], bool]) -> list[Held]:
    policy, now = draft.policy, draft.now
    return [
        held
        for held in draft.ledger.held.values()
        if test(held)
        and held.job.phase is Phase.RUNNING
        and quiet_until(held.job, policy)[0] <= now
    ]
