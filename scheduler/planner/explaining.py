"""Why a job waits: what can never work first, then the one thing that stands in its way now."""

from __future__ import annotations

from scheduler.planner.decisions import Why
from scheduler.planner.draft import Draft
from scheduler.planner.fleet import Fleet, Pool
from scheduler.planner.needs import Need, Size
from scheduler.planner.ordering import Line
from scheduler.planner.placement import free_on, pool_room
from scheduler.planner.policy import Push
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import Job

MOST_KNOWN = 4096


def never(job: Job, line: Line, draft: Draft) -> Why | None:
    """Why it can never run on this fleet with these quotas; ``None`` if it can."""
    need, smallest = line.need, line.sizes[-1]
    if draft.accounts.by_id and line.account is None:
        return Why(reason=Reason.NO_SUCH_TENANT, numbers={"tenant": job.tenant})
    known = draft.memory.hopeless
    if (need, smallest) not in known:
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[need, smallest] = _nowhere(need, smallest, draft)
    nowhere = known[need, smallest]
    if nowhere is not None:
        return nowhere
    pools = [pool for pool in draft.fleet.suiting(need) if pool.suited(need)]
    beyond = _over_limit(line, pools, smallest, draft)
    if beyond is not None:
        return beyond
    return _kept_gone(job, draft) if line.claim.kept else None


def _nowhere(need: Need, smallest: Size, draft: Draft) -> Why | None:
    """Why no place of this fleet, were it empty, would do."""
    missing = _missing(need, draft.fleet)
    if missing is not None:
        return missing
    pools = [pool for pool in draft.fleet.suiting(need) if pool.suited(need)]
    if need.milli or need.memory:
        pools = [pool for pool in pools if _hosts(pool, need, smallest)]
        if not pools:
            return Why(reason=Reason.HOST_SIZE)
    largest, joined = _largest(pools, need, smallest)
    if max(largest, joined) < smallest.devices:
        reason = Reason.TOO_LARGE
        if _total(pools, need, smallest) >= smallest.devices and not any(p.joining for p in pools):
            reason = Reason.NO_JOINING_NODES
        numbers = {"wanted": smallest.devices, "largest": max(largest, joined)}
        return Why(reason=reason, numbers=numbers)
    return None


def _over_limit(line: Line, pools: list[Pool], size: Size, draft: Draft) -> Why | None:
    """Whether the tenant may never use so many devices of any kind."""
    if line.account is None or not draft.policy.quotas:
        return None
    ceilings = [line.account.ceiling(kind) for kind in sorted({pool.kind for pool in pools})]
    if not ceilings or any(ceiling is None or ceiling[0] >= size.devices for ceiling in ceilings):
        return None
    limit, tenant = max(ceiling for ceiling in ceilings if ceiling is not None)
    numbers = {"wanted": size.devices, "tenant": tenant, "limit": limit}
    return Why(reason=Reason.OVER_LIMIT, numbers=numbers)


def _missing(need: Need, fleet: Fleet) -> Why | None:
    if need.kind and need.kind not in fleet.by_kind:
        return Why(reason=Reason.NO_SUCH_KIND, numbers={"kind": need.kind})
    pools = fleet.suiting(need)
    if not pools:
        if not fleet.pools:
            return Why(reason=Reason.TOO_LARGE, numbers={"wanted": "some", "largest": 0})
        return Why(reason=Reason.DEVICE_MEMORY, numbers={"wanted": need.device_memory})
    if any(pool.suited(need) for pool in pools):
        return None
    bare = need._replace(avoid=frozenset())
    if any(pool.suited(bare) for pool in pools):
        return Why(reason=Reason.AVOIDS_ALL)
    if any(pool.suited(bare._replace(restore=False)) for pool in pools):
        return Why(reason=Reason.NO_RESTORING_NODE)
    return Why(reason=Reason.NO_SUCH_PARTITION, numbers={"partition": need.partition})


def _whole(pool: Pool, mask: int, size: Size) -> int:
    """Groups that the bins would hold if nothing ran there."""
    return sum(
        (bins & mask).bit_count() * (count // size.each) for count, bins in enumerate(pool.whole)
    )


def _total(pools: list[Pool], need: Need, size: Size) -> int:
    return sum(_whole(pool, pool.suited(need), size) for pool in pools) * size.each


def _largest(pools: list[Pool], need: Need, size: Size) -> tuple[int, int]:
    """The devices of the largest single node, and of the largest region whose nodes join."""
    single, regions = 0, {(pool.region, pool.kind): 0 for pool in pools}
    for pool in pools:
        mask = pool.suited(need)
        single = max([single, *(count for count, bins in enumerate(pool.whole) if bins & mask)])
        regions[pool.region, pool.kind] += _whole(pool, mask & pool.joining, size) * size.each
    return single, max(regions.values(), default=0)


def _hosts(pool: Pool, need: Need, size: Size) -> bool:
    """Whether some node is large enough for one group."""
    for bin_ in pool.each(pool.suited(need)):
        node = bin_.host.node
        cpus = not node.cpus or node.cpus * 1000 >= need.milli * size.share
        if cpus and (not node.memory or node.memory >= need.memory * size.share):
            return True
    return False


def _kept_gone(job: Job, draft: Draft) -> Why | None:
    for seat in job.kept_on:
        if seat.node not in draft.fleet.hosts:
            return Why(reason=Reason.KEPT_NODE_GONE, numbers={"node": seat.node})
    return None


def not_now(job: Job, line: Line, draft: Draft) -> Why:
    """Why it does not run in this cycle, the dominant reason with its numbers."""
    size = line.sizes[-1]
    if line.claim.kept:
        return Why(reason=Reason.KEPT_NODE_BUSY, numbers={"node": job.kept_on[0].node})
    refused = _refused(line, draft, size)
    if refused is not None:
        return refused
    known = draft.reasons.get((line.need, size))
    if known is None:
        known = draft.reasons[line.need, size] = _no_room(line.need, size, draft)
    budget = draft.policy.moves_per_hour
    if (
        known.reason is Reason.FRAGMENTED
        and draft.policy.migration
        and draft.moves_left <= 0 < budget
    ):
        return Why(reason=Reason.MOVE_BUDGET, numbers={"budget": budget})
    return _shielded(line, size, draft) or known


def _shielded(line: Line, size: Size, draft: Draft) -> Why | None:
    """Whether those it could push off are enough, but protected for some time yet."""
    if not draft.policy.preemption or draft.policy.push is not Push.RANK:
        return None
    if draft.shielded is None:
        draft.shielded = {}
        for until, id_ in draft.memory.ripening:
            held = draft.ledger.held.get(id_)
            if held is not None and held.protected == until:
                key = (draft.tier(held.job).rank, held.kind)
                draft.shielded.setdefault(key, {})[id_] = held
    rank = draft.tier(line.job).rank
    lower = [
        held
        for (tier, kind), found in draft.shielded.items()
        if tier < rank and kind in line.kinds
        for held in found.values()
    ]
    if sum(held.count for held in lower) < size.devices:
        return None
    seconds = min(held.protected for held in lower) - draft.now
    return Why(reason=Reason.PROTECTED, numbers={"count": len(lower), "seconds": round(seconds)})


def _no_room(need: Need, size: Size, draft: Draft) -> Why:
    """How the free devices fall short of this size."""
    pools = draft.fleet.suiting(need)
    room = free = away = 0
    best = ("cluster", 0)
    for pool in pools:
        mask, suited = pool.allowed(need), pool.suited(need)
        here = free_on({pool: mask})
        free += here
        gone = suited & ~mask
        if gone:
            away += sum(count * (bins & gone).bit_count() for count, bins in enumerate(pool.whole))
        room += pool_room(pool, mask, need, size)
        best = max(best, ("cluster", here), key=lambda entry: entry[1])
    numbers: dict[str, object] = {
        "wanted": size.devices, "free": free, "away": away, "room": room, "groups": size.groups,
        "each": size.each, "level": best[0], "largest": best[1],
    }  # fmt: skip
    return Why(reason=_scarce(need, size, free, away, room), numbers=numbers)


def _scarce(need: Need, size: Size, free: int, away: int, room: int) -> Reason:
    """Which way the free devices fall short."""
    if free < size.devices:
        return Reason.NODES_AWAY if away and free + away >= size.devices else Reason.BUSY
    if room >= size.groups:
        return Reason.TOPOLOGY
    return Reason.HOST_BUSY if need.milli or need.memory else Reason.FRAGMENTED


def _refused(line: Line, draft: Draft, size: Size) -> Why | None:
    """The quota or the reservation that stands in its way, if one does for every kind."""
    kept, found = draft.behind.get(line), None
    for kind in line.kinds:
        refusal = draft.refusal(line.account, kind, size.devices)
        if refusal is not None:
            found = found or Why(reason=refusal.reason, numbers=refusal.numbers)
        elif kept is None:
            return None
    if found is not None or kept is None:
        return found
    waited = round(draft.now - kept.job.waiting_since)
    numbers = {"ahead": kept.job.id, "waited": waited, "free": kept.free}
    return Why(reason=Reason.RESERVED, numbers=numbers)
