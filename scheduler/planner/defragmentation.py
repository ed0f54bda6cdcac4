"""Tidy up in the background: empty nodes that are hardly used into others that are half full."""

from __future__ import annotations

from scheduler.planner.decisions import Why
from scheduler.planner.draft import Draft
from scheduler.planner.fleet import Bin, Pool
from scheduler.planner.ledger import Held
from scheduler.planner.needs import natural, need_of, sizes
from scheduler.planner.placement import find
from scheduler.planner.reasons import Reason

ENOUGH_WHOLE = 0.1
"""With such a share of nodes entirely free nothing is tidied: large jobs find a place anyway."""
WORTH = 0.25
"""Chance that a node emptied now is wanted whole within the horizon of gains."""


def tidy_up(draft: Draft) -> None:
    """Free whole nodes where that gains more than the moves cost, within the budgets."""
    left = min(draft.moves_left, draft.policy.moves_per_cycle)
    for pool in draft.fleet.pools:
        whole = (pool.by_free[pool.size] & pool.usable).bit_count()
        if left <= 0:
            return
        if pool.size < 2 or whole > ENOUGH_WHOLE * pool.usable.bit_count():
            continue
        for bin_ in _hardly_used(pool):
            movers = _movers(draft, bin_)
            if movers and len(movers) <= left and _empty(draft, bin_, movers):
                left -= len(movers)
                draft.moves_left -= len(movers)


def _hardly_used(pool: Pool) -> list[Bin]:
    """Partly used bins, those with most free devices first; at most the better half."""
    found: list[Bin] = []
    for free in range(pool.size - 1, pool.size // 2 - 1, -1):
        found += pool.each(pool.by_free[free] & pool.usable)
    return found[:64]


def _movers(draft: Draft, bin_: Bin) -> list[Held]:
    """All jobs of a bin if every one can leave it, else none."""
    movers: list[Held] = []
    for id_ in sorted(bin_.jobs, key=natural):
        held = draft.ledger.held[id_]
        alone = len(held.parts) == 1 and draft.untouched(id_)
        if not alone or not held.leavable or held.cooling > draft.now:
            return []
        movers.append(held)
    return movers


def _empty(draft: Draft, bin_: Bin, movers: list[Held]) -> bool:
    """Move all of them to other bins in use; keep it only if the gain is worth the cost."""
    pool = bin_.pool
    worth = WORTH * draft.policy.gain_horizon_s * len(bin_.ids)
    if sum(draft.move_s(held.job) * held.count for held in movers) > worth:
        return False
    barred = {other: other.by_free[other.size] for other in draft.fleet.by_kind[pool.kind]}
    barred[pool] |= bin_.bit
    # Moving onto bins that are emptier than this one would only turn the problem round.
    for free in range(bin_.count, pool.size):
        barred[pool] |= pool.by_free[free]
    why = Why(reason=Reason.DEFRAGMENTED, numbers={"gained": len(bin_.ids)})
    with draft.undoing() as attempt:
        for held in movers:
            need = need_of(held.job)
            size = next((one for one in sizes(held.job) if one.devices == held.count), None)
            draft.ledger.take(held.job.id)
            spots = find([pool], need, size, barred) if size is not None else None
            if spots is None or size is None:
                return False
            worth -= draft.move_s(held.job, spots) * held.count
            if worth < 0:
                return False
            draft.relocate(held, size, spots, why)
        attempt.keep()
    return True
