"""What could be made free for a waiting job at the very most, by counting only.

Who is out of reach even so need not be searched for: no order and no reservation helps.
"""

from __future__ import annotations

from scheduler.planner.draft import Draft
from scheduler.planner.ordering import NO_TIER, Line
from scheduler.planner.policy import Push


def out_of_reach(line: Line, draft: Draft) -> bool:
    """Whether the first of a line finds no room, whoever shrinks, moves aside or leaves."""
    if line.claim.kept:
        return False
    policy = draft.policy
    least, free = line.sizes[-1].devices, _free(line, draft)
    if free >= least and line.claim.blocked_at != draft.memory.loosened:
        return False
    if policy.migration and free >= line.sizes[0].devices:
        return False
    if policy.elasticity and by_shrinking(line, draft) >= least:
        return False
    return not policy.preemption or by_pushing(line, draft) < least


def by_shrinking(line: Line, draft: Draft) -> int:
    """Free devices and those that running elastic jobs hold beyond their bounds; 0 if none do."""
    known, kinds = draft.memory.spare, line.kinds
    if len(kinds) == 1:
        spare = known.get(kinds[0], 0)
    else:
        spare = sum([known.get(kind, 0) for kind in kinds])
    return spare and spare + _free(line, draft)


def by_pushing(line: Line, draft: Draft) -> int:
    """Free devices and those of whom tier, promise, quota or order might let it push off.

    0 if there are none of these.
    """
    policy, account = draft.policy, line.account
    reclaims = policy.quotas and account is not None and not account.neutral
    anybody = reclaims or policy.push is Push.ORDER
    tier = line.tier if policy.tiers else NO_TIER
    # For one of its own tier it must be short of its promise: here that is taken for granted.
    most = tier.rank + (policy.promises and tier.promise > 0)
    asked = (None if anybody else most, line.kinds)
    held = draft.pushable.get(asked)
    if held is None:
        held = draft.pushable[asked] = sum(
            layer.count(line.kinds)
            for id_, layer in draft.memory.pushable.items()
            if anybody or draft.rank(id_) < most
        )
    return held and held + _free(line, draft)


def _free(line: Line, draft: Draft) -> int:
    kinds, free = line.kinds, draft.fleet.free
    return free(kinds[0]) if len(kinds) == 1 else sum([free(kind) for kind in kinds])
