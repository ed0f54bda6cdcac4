"""The plan: the passes of one cycle in order, gentlest remedy first."""

from __future__ import annotations

import gc
from heapq import heapify, heappop, heappush, heapreplace

from scheduler.planner.counted import counted
from scheduler.planner.decisions import Decision, Hold, Plan, Why
from scheduler.planner.defragmentation import tidy_up
from scheduler.planner.draft import Draft
from scheduler.planner.elasticity import grow, shrink_for
from scheduler.planner.explaining import never, not_now
from scheduler.planner.fairness import Account
from scheduler.planner.ledger import NEVER
from scheduler.planner.memory import Memory
from scheduler.planner.migration import clear_out, come_back, grant_wishes, make_gap
from scheduler.planner.needs import Size
from scheduler.planner.ordering import Key, Line, standing
from scheduler.planner.policy import Backfill, Ordering, Policy, Push
from scheduler.planner.preemption import push_off, spare
from scheduler.planner.promises import owed
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import Job, Snapshot

SHIFTING = (Ordering.TIERS, Ordering.FAIR)
"""Orderings in which what one is given changes the place of others."""


def plan(snapshot: Snapshot, policy: Policy, memory: Memory | None = None) -> Plan:
    """Answer every waiting job, trying the gentlest remedy first.

    Pure: the same snapshot and policy always give the same plan. ``memory``, if the same one is
    handed in from cycle to cycle, only saves working out again what has not changed.
    """
    memory = memory or Memory()
    # Nothing here makes garbage in circles; looking for some among a million objects takes longer
    # than planning.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _plan(snapshot, policy, memory)
    except BaseException:
        memory.forget()
        raise
    finally:
        if collecting:
            gc.enable()


def _plan(snapshot: Snapshot, policy: Policy, memory: Memory) -> Plan:
    memory.take_in(snapshot, policy)
    if policy.pool:
        return counted(snapshot, policy, memory)
    draft = Draft(snapshot, policy, memory)
    mark = draft.ledger.mark
    clear_out(draft)
    grant_wishes(draft)
    stopped = admit(draft)
    spare(draft)
    holds = answers(draft, stopped) if policy.explain else []
    if not draft.leaving:
        # Else someone might move who would have made room for whom another had to leave.
        use_what_is_left(draft)
    decided = draft.decisions()
    memory.expected, memory.acted = draft.promised(), bool(decided)
    draft.ledger.undo(mark)
    return (*decided, *holds)


def use_what_is_left(draft: Draft) -> None:
    """Grow and tidy up, unless that came to nothing before and nothing has changed since."""
    memory, policy = draft.memory, draft.policy
    idle, epoch = not (draft.moved or draft.placed), memory.epoch
    if policy.elasticity and memory.elastic:
        full, hungry = memory.full_at, frozenset(draft.hungry)
        if not (idle and full and full[0] == epoch and full[1] <= hungry):
            grow(draft)
            memory.full_at = (epoch, hungry) if idle and not draft.moved else None
    if policy.defragmentation and not (idle and memory.tidy_at == epoch):
        before = len(draft.moved)
        tidy_up(draft)
        memory.tidy_at = epoch if idle and before == len(draft.moved) == 0 else -1


def admit(draft: Draft) -> dict[Line, Why | None]:
    """Go through the lines in order; answers why each line stands still (``None``: find out)."""
    policy, ledger = draft.policy, draft.ledger
    strict = policy.backfill is Backfill.NONE
    stopped, heap = _in_order(draft)
    ahead: dict[Account | None, Job] = {}
    while heap:
        _, line, seen = heap[0]
        if seen != ledger.mark and policy.ordering in SHIFTING:
            # Someone was given something meanwhile.
            current = standing(line, policy, draft.now)
            heapreplace(heap, (current, line, ledger.mark))
            if heap[0][1] is not line:
                continue
        heappop(heap)
        first = strict and (ahead.get(None) or ahead.get(line.account))
        if first:
            stopped[line] = Why(reason=Reason.BEHIND, numbers={"ahead": first.id})
        elif serve(line, draft):
            line.at += 1
            if line.at < len(line.entries):
                heappush(heap, (standing(line, policy, draft.now), line, ledger.mark))
        else:
            stopped[line] = None
            if strict:
                # One whom its quota holds back holds back its own tenant only.
                limited = _refused(line, draft)
                ahead.setdefault(line.account if limited else None, line.job)
                if not limited and not policy.explain:
                    break
    return stopped


def _in_order(draft: Draft) -> tuple[dict[Line, Why | None], list[tuple[Key, Line, int]]]:
    """The lines that can never be served, and a heap of all others."""
    policy, now, mark = draft.policy, draft.now, draft.ledger.mark
    hopeless: list[tuple[Key, Line]] = []
    heap: list[tuple[Key, Line, int]] = []
    ground, shifting = draft.memory.ground, policy.ordering in SHIFTING
    blocked = draft.memory.loosened if _mute(draft) else None
    for line in draft.memory.queue.lines.values():
        if line.blocked_at == blocked:
            continue
        line.at = 0
        if line.looked_at != ground:
            _look(line, draft)
        if line.structural is not None:
            hopeless.append((line.entries[0][0], line))
        else:
            key = standing(line, policy, now) if shifting else line.entries[0][0]
            heap.append((key, line, mark))
    heapify(heap)
    return {line: line.structural for _, line in sorted(hopeless)}, heap


def _mute(draft: Draft) -> bool:
    """Whether a blocked line neither gets an answer nor stands in anybody's way."""
    policy = draft.policy
    return (
        not (policy.explain or policy.preemption or policy.migration or policy.elasticity)
        and policy.backfill is Backfill.SKIP
        and policy.patience_s == NEVER
        and not (draft.leaving or draft.moved)
    )


def _look(line: Line, draft: Draft) -> None:
    """Work out once per fleet which kinds suit a line, and whether it can ever run."""
    line.looked_at = draft.memory.ground
    line.kinds = tuple(sorted({pool.kind for pool in draft.fleet.suiting(line.need)}))
    line.structural = never(line.entries[0][1], line, draft)


def serve(line: Line, draft: Draft) -> bool:
    """Place the job whose turn it is, by the gentlest remedy that works."""
    job, policy, memory = line.job, draft.policy, draft.memory
    if known_helpless(line, draft):
        return _stand(line, job, draft, worked=False)
    if draft.reserved and _kept_out(line, job, draft):
        return False
    # Whoever leaves or moves in this plan may leave room over.
    blocked = line.blocked_at == memory.loosened and not (draft.leaving or draft.moved)
    if blocked and not (policy.preemption or policy.migration or policy.elasticity):
        return _stand(line, job, draft, worked=False)
    if line.kept:
        return come_back(job, draft)
    fit = None if blocked else draft.fit(job, line.need, wanted_sizes(job, line))
    if fit is not None:
        size, spots = fit
        draft.place(job, size, spots, draft.why_placed(job, size))
        return True
    hindered = bool(draft.reserved) and not _unhindered(line, job, draft)
    if hindered and not blocked and _but_for_reservations(line, job, draft):
        # Nobody is disturbed for one that only has to wait for its turn.
        return _stand(line, job, draft, worked=False)
    line.blocked_at = memory.loosened
    worked = (
        (policy.elasticity and shrink_for(line, job, draft))
        or (policy.migration and make_gap(line, job, draft))
        or (policy.preemption and push_off(line, job, draft))
    )
    if not worked and not hindered:
        line.helpless = _moment(line, draft)
    return _stand(line, job, draft, worked=worked)


def _moment(line: Line, draft: Draft) -> Key | None:
    """What a search for others to ask depends on; ``None``: on the time, too."""
    policy, job = draft.policy, line.job
    if policy.preemption and policy.push is Push.ORDER and policy.ordering is Ordering.LAS:
        return None
    promise = draft.tier(job).promise if policy.promises else 0.0
    return (
        draft.memory.epoch, draft.ledger.mark, job.id, owed(job, promise, draft.now) > 0,
    )  # fmt: skip


def known_helpless(line: Line, draft: Draft) -> bool:
    """Whether nothing changed since its job found neither room nor anybody to ask.

    That was without reservations, which can only take away; with several kinds of devices they may
    send a search elsewhere.
    """
    known = line.helpless
    if known is None or known[0] != draft.memory.epoch:
        return False
    if draft.reserved and len(line.kinds) != 1:
        return False
    return known == _moment(line, draft)


def _unhindered(line: Line, job: Job, draft: Draft) -> bool:
    """Whether reservations leave a job all sizes and all devices that would suit it."""
    return len(line.kinds) == 1 and draft.passes(job, line.kinds[0], line.sizes[0].devices)


def _kept_out(line: Line, job: Job, draft: Draft) -> bool:
    """Whether reservations keep a job from all devices that would suit it."""
    least = line.sizes[-1].devices
    return not any(draft.passes(job, kind, least) for kind in line.kinds)


def _but_for_reservations(line: Line, job: Job, draft: Draft) -> bool:
    """Whether there is room that is kept for others."""
    reserved, draft.reserved = draft.reserved, {}
    try:
        return draft.fit(job, line.need, wanted_sizes(job, line)) is not None
    finally:
        draft.reserved = reserved


def _refused(line: Line, draft: Draft) -> bool:
    """Whether the quota of its tenant holds a line back."""
    return draft.refusal(line.account, line.kinds[0], line.sizes[-1].devices) is not None


def _stand(line: Line, job: Job, draft: Draft, *, worked: bool) -> bool:
    """What a job that found no place means for those behind it."""
    if worked:
        return True
    if _refused(line, draft):
        return False
    policy = draft.policy
    draft.hungry.update(line.kinds)
    patient = policy.backfill is Backfill.EASY or (
        policy.backfill is Backfill.SKIP and draft.now - job.waiting_since > policy.patience_s
    )
    if patient and line.kinds[0] not in draft.reserved and _suits_all(line, draft):
        draft.reserve(job, line.kinds[0], line.sizes[-1].devices)
    return False


def _suits_all(line: Line, draft: Draft) -> bool:
    """Whether every usable node with one kind of devices suits a line.

    Devices are kept by counting; for one that waits for a few nodes only all would stand still.
    """
    if len(line.kinds) > 1 or line.kept:
        return False
    return all(
        pool.memory >= line.need.device_memory and pool.allowed(line.need) == pool.usable
        for pool in draft.fleet.by_kind[line.kinds[0]]
    )


def wanted_sizes(job: Job, line: Line) -> tuple[Size, ...]:
    """The sizes to try, largest first; no larger than a person asked for."""
    sizes = line.sizes
    if job.asked_devices is not None:
        sizes = tuple(size for size in sizes if size.devices <= job.asked_devices) or sizes[-1:]
    return sizes


def answers(draft: Draft, stopped: dict[Line, Why | None]) -> list[Decision]:
    """A Hold for everyone who waits and was not placed."""
    holds: list[Decision] = []
    for line, known in stopped.items():
        why = known or not_now(line.job, line, draft)
        holds += [Hold(job=job.id, why=why) for _, job in line.entries[line.at :]]
    return holds
