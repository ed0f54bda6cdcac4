"""Fewer devices to make room for others, more where some are idle; replicas stay the same."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.planner.decisions import Why
from scheduler.planner.draft import Draft
from scheduler.planner.ledger import Held, Part
from scheduler.planner.needs import Size, natural, need_of, sizes
from scheduler.planner.ordering import Line
from scheduler.planner.placement import Spot, find
from scheduler.planner.promises import fraction, remaining
from scheduler.planner.reach import by_shrinking
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import Job, Seat, Tier
from scheduler.planner.victims import Pusher

TRIED = 64
"""Jobs that are asked to give devices, at most, for one that waits."""
WORTH = 0.98
"""Growing must shorten the time to the end at least to this share of it."""


def shrink_for(line: Line, job: Job, draft: Draft) -> bool:
    """Place ``job`` on devices that elastic jobs can spare."""
    if by_shrinking(line, draft) < line.sizes[-1].devices:
        return False
    pusher = Pusher(line, job, draft)
    givers = _givers(pusher, line)
    if not givers:
        return False
    for size in line.sizes:
        pools = draft.permitted(job, line.need, size.devices, idle=False)
        given = sum(one.count - sizes(one.job)[-1].devices for one in givers)
        free = sum(pool.free for pool in pools)
        if not pools or free + given < size.devices:
            continue
        if any(_give(draft, line, size, [one], stepwise=True) for one in givers):
            return True
        if len(givers) > 1 and _give(draft, line, size, givers, stepwise=False):
            return True
    return False


def _givers(pusher: Pusher, line: Line) -> list[Held]:
    """Elastic jobs above their bound that this one may ask, the least important first."""
    draft, own = pusher.draft, pusher.tier.rank
    entitled = any(pusher.entitled(kind) for kind in line.kinds)
    anybody = entitled or pusher.by_order
    if draft.givers is None:
        draft.givers = _all_givers(draft)
    smallest, spare = line.sizes[-1], draft.memory.elastic
    able = [
        held
        for rank, spares, held in draft.givers
        if (anybody or rank < own or (rank == own and spares)) and held.kind in line.kinds
    ]
    free = sum([draft.fleet.free(kind) for kind in line.kinds])
    if free + sum([spare[held.job.id] for held in able]) < smallest.devices:
        return []
    found: list[Held] = []
    for held in able:
        if draft.untouched(held.job.id) and _helps(held, smallest) and _may_ask(pusher, held):
            found.append(held)
            if len(found) == TRIED:
                break
    return found


def _all_givers(draft: Draft) -> list[tuple[int, bool, Held]]:
    """Elastic jobs above their bound with their rank, and whether they spare some for equals."""
    found = []
    for id_, above in draft.memory.elastic.items():
        held = draft.ledger.held.get(id_) if above else None
        if held is not None and held.leavable and held.cooling <= draft.now:
            tier = draft.tier(held.job)
            found.append((tier.rank, _keeps_promise(held, tier, draft), held))
    found.sort(key=lambda one: (one[0], -one[2].count, natural(one[2].job.id)))
    return found


def _helps(held: Held, size: Size) -> bool:
    """Whether what a job holds could, with what is free beside it, be part of such a place."""
    return any(part.bin.count + part.mask.bit_count() >= size.each for part in held.parts)


def _may_ask(pusher: Pusher, held: Held) -> bool:
    if pusher.right(held) is not None:
        return True
    return not pusher.by_order and _spares(held, pusher) and pusher.above(held)


def _spares(held: Held, pusher: Pusher) -> bool:
    """Whether a job of no higher tier keeps its promise, if it has one, with fewer devices."""
    tier = pusher.draft.tier(held.job)
    return tier.rank <= pusher.tier.rank and _keeps_promise(held, tier, pusher.draft)


def _keeps_promise(held: Held, tier: Tier, draft: Draft) -> bool:
    """Whether it has no promise, or is above it."""
    if tier.promise <= 0:
        return True
    return fraction(held.job, draft.now) - tier.promise > draft.policy.promise_margin


def _give(draft: Draft, line: Line, size: Size, givers: Iterable[Held], *, stepwise: bool) -> bool:
    """Shrink one job step by step, or one after the other as far as they go, until it fits."""
    job = line.job
    with draft.ledger.tentatively() as attempt:
        given: list[tuple[Held, tuple[Seat, ...], int]] = []
        spots: list[Spot] | None = None
        for held in givers:
            smaller = [one for one in sizes(held.job) if one.devices < held.count]
            for step in smaller if stepwise else smaller[-1:]:
                mark = draft.ledger.mark
                seats = shrunk(draft, held, step)
                if seats is None:
                    continue
                pools = draft.permitted(job, line.need, size.devices)
                spots = find(pools, line.need, size) if pools else None
                if spots is not None or not stepwise:
                    given.append((held, seats, step.devices))
                    break
                draft.ledger.undo(mark)
            if spots is not None:
                break
        if spots is None:
            return False
        why = Why(reason=Reason.MADE_ROOM, numbers={"count": len(given)})
        draft.place(job, size, spots, why, tuple(held.job.id for held, _, _ in given))
        attempt.keep()
    for held, seats, devices in given:
        numbers = {"beneficiary": job.id, "devices": devices, "before": held.count}
        draft.resize(held, seats, Why(reason=Reason.GAVE_DEVICES, numbers=numbers), job.id)
    return True


def shrunk(draft: Draft, held: Held, size: Size) -> tuple[Seat, ...] | None:
    """Let a job go on with some of its own devices; ``None`` if its hosts are too full."""
    job = held.job
    groups: list[Seat] = []
    for seat in job.seats:
        if not any(seat.node == one.node and seat.devices == one.devices for one in groups):
            groups.append(seat)
    room: dict[str, int] = {}
    for part in held.parts:
        node = part.bin.host.node.id
        room[node] = max(room.get(node, 0), (part.bin.free | part.mask).bit_count())
    # Give up whole nodes, first those where most becomes free together.
    kept = sorted(groups, key=lambda one: (room.get(one.node, 0), one.rank))[: size.groups]
    kept.sort(key=lambda one: one.rank)
    seats: list[Seat] = []
    for group in kept:
        for _ in range(size.share):
            seats.append(Seat(rank=len(seats), node=group.node, devices=group.devices))
    after = draft.ledger.observed_as(job, tuple(seats))
    draft.ledger.take(job.id)
    if any(_too_much(part) for part in after.parts) or len(kept) < size.groups:
        draft.ledger.put(held)
        return None
    draft.ledger.put(after)
    return tuple(seats)


def _too_much(part: Part) -> bool:
    host = part.bin.host
    return part.milli > host.milli or part.memory > host.memory


def grow(draft: Draft) -> None:
    """Give idle devices to elastic jobs, unless someone waits for such devices."""
    able = []
    for id_ in draft.memory.elastic:
        held = draft.ledger.held.get(id_)
        if held is None or not draft.untouched(id_) or held.kind in draft.hungry:
            continue
        if held.count < held.job.devices and held.leavable and held.cooling <= draft.now:
            able.append(held)
    able.sort(
        key=lambda one: (
            -draft.tier(one.job).rank,
            one.count / one.job.devices,
            natural(one.job.id),
        )
    )
    for held in able:
        within = draft.fleet.free(held.kind) + held.count
        if held.job.asked_devices is not None:
            within = min(within, held.job.asked_devices)
        for size in sizes(held.job):
            if size.devices <= held.count:
                break
            if (
                size.devices <= within
                and _worth(held, size, draft)
                and enlarge(draft, held, size, Reason.GREW)
            ):
                break


def _worth(held: Held, size: Size, draft: Draft) -> bool:
    """Whether the job is done sooner, the resize itself counted."""
    job = held.job
    left = remaining(job, draft.now)
    if left == float("inf"):
        left = draft.policy.gain_horizon_s
    before = left * job.devices / held.count
    after = draft.move_s(job) + left * job.devices / size.devices
    return after < WORTH * before


def enlarge(draft: Draft, held: Held, size: Size, reason: Reason) -> bool:
    """Resize a running job to more devices, on its own nodes if they have room."""
    job = held.job
    need = need_of(job)
    if draft.refusal(held.account, held.kind, size.devices - held.count) is not None:
        return False
    pools = [pool for pool in draft.fleet.suiting(need) if pool.kind == held.kind]
    own = frozenset(seat.node for seat in job.seats)
    with draft.ledger.tentatively() as attempt:
        draft.ledger.take(job.id)
        spots = find(pools, need._replace(only=own), size) or find(pools, need, size)
        if spots is None:
            return False
        numbers = {"devices": size.devices, "before": held.count}
        draft.relocate(held, size, spots, Why(reason=reason, numbers=numbers))
        attempt.keep()
    return True


def resize_as_asked(draft: Draft, held: Held) -> None:
    """Follow a person's wish for a number of devices, as nearly as sizes and room allow."""
    job = held.job
    asked = job.asked_devices
    if asked is None or not held.leavable:
        return
    legal = [size for size in sizes(job) if size.devices <= asked] or list(sizes(job)[-1:])
    for size in legal:
        if size.devices == held.count:
            return
        if size.devices > held.count:
            if enlarge(draft, held, size, Reason.ASKED):
                return
            continue
        seats = shrunk(draft, held, size)
        if seats is not None:
            draft.resize(held, seats, Why(reason=Reason.ASKED), None)
            return
