"""Who may be pushed off by whom, and where in the fleet they are."""

from __future__ import annotations

from scheduler.planner.costs import loss
from scheduler.planner.draft import Draft
from scheduler.planner.fairness import Account
from scheduler.planner.layers import Yielders
from scheduler.planner.ledger import Held
from scheduler.planner.ordering import Line, rank_in_time
from scheduler.planner.policy import Push
from scheduler.planner.promises import fraction, owed
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import Job, Tier


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
        if held.protected > draft.now or not draft.untouched(victim.id):
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


class Option:
    """Some jobs that together give room for ``gain`` groups."""

    __slots__ = ("gain", "key", "victims")

    def __init__(self, victims: list[Held], gain: int, draft: Draft) -> None:
        self.victims = victims
        self.gain = gain
        self.key = (
            -gain / len(victims),
            max(draft.tier(one.job).rank for one in victims),
            sum(loss(one.job, draft.policy, draft.now) for one in victims),
            sorted((len(one.job.id), one.job.id) for one in victims),
        )


def yielders(draft: Draft, pusher: Pusher) -> Yielders:
    """Those whom a pusher of this standing might push off; looked up once a cycle."""
    rank = pusher.tier.rank
    same = pusher.short and pusher.tier.promise > 0
    entitled = any(pusher.entitled(kind) for kind in sorted(draft.fleet.by_kind))
    flavour = ("push", rank, same, entitled or pusher.by_order)
    found = draft.yielders.get(flavour)
    if found is None:
        layers = [
            layer
            for tier, layer in sorted(draft.memory.pushable.items())
            if entitled or pusher.by_order or draft.rank(tier) < rank + same
        ]
        found = draft.yielders[flavour] = Yielders(layers)
    return found
