"""The plan: the passes of one cycle in order, gentlest remedy first."""

from __future__ import annotations

import gc

from scheduler.planner.claims import Claim
from scheduler.planner.counted import counted
from scheduler.planner.decisions import Decision, Hold, Plan, Why
from scheduler.planner.defragmentation import tidy_up
from scheduler.planner.draft import MOST_PLACES, Draft
from scheduler.planner.elasticity import grow, shrink_for
from scheduler.planner.explaining import not_now
from scheduler.planner.fairness import Account
from scheduler.planner.ledger import NEVER
from scheduler.planner.memory import Memory
from scheduler.planner.migration import clear_out, come_back, grant_wishes, make_gap
from scheduler.planner.needs import Size
from scheduler.planner.ordering import Line
from scheduler.planner.policy import Backfill, Policy
from scheduler.planner.preemption import push_off, spare
from scheduler.planner.reasons import Reason
from scheduler.planner.refusals import (
    begin,
    known_helpless,
    limited,
    look,
    moment,
    open_to,
    passed_over,
    patient,
    refused_to_all,
    starve,
)
from scheduler.planner.snapshot import Job, Snapshot
from scheduler.planner.turns import ShiftingTurns


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
    memory.expected, memory.acted = draft.promised(), bool(decided) or draft.in_vain
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
    policy, queue = draft.policy, draft.memory.queue
    strict = policy.backfill is Backfill.NONE
    queue.rewind()
    stopped: dict[Line, Why | None] = {}
    turns = begin(draft)
    if turns is None:
        return stopped
    muted = draft.memory.loosened if _mute(draft) else None
    ahead: dict[Account | None, Job] = {}
    refused: dict[Claim, int] = {}
    unanswered = not (strict or policy.explain)
    while (line := turns.next()) is not None:
        claim = line.claim
        if claim.blocked_at == muted:
            continue
        look(claim, draft)
        if unanswered and passed_over(line, draft, refused=refused.get(claim) == draft.ledger.mark):
            continue
        if claim.structural is not None:
            stopped[line] = claim.structural
        elif first := strict and (ahead.get(None) or ahead.get(line.account)):
            stopped[line] = Why(reason=Reason.BEHIND, numbers={"ahead": first.id})
        elif serve(line, draft):
            if isinstance(turns, ShiftingTurns):
                turns.given(line.account, draft.ledger.held[line.job.id].count)
                if turns.left_out and (draft.leaving or draft.moved):
                    starve({over.claim: None for over in turns.recall()}, draft)
            if queue.advance(line):
                turns.again(line)
        else:
            stopped[line] = None
            if unanswered and refused_to_all(claim, draft):
                refused[claim] = draft.ledger.mark
            if strict:
                # One whom its quota holds back holds back its own tenant only.
                own = limited(line, draft)
                ahead.setdefault(line.account if own else None, line.job)
                if not own and not policy.explain:
                    break
    if isinstance(turns, ShiftingTurns):
        starve(turns.left_out, draft)
    return stopped


def _mute(draft: Draft) -> bool:
    """Whether a blocked line neither gets an answer nor stands in anybody's way."""
    policy = draft.policy
    return (
        not (policy.explain or policy.preemption or policy.migration or policy.elasticity)
        and policy.backfill is Backfill.SKIP
        and policy.patience_s == NEVER
        and not (draft.leaving or draft.moved)
    )


def serve(line: Line, draft: Draft) -> bool:
    """Place the job whose turn it is, by the gentlest remedy that works."""
    job, policy, memory = line.job, draft.policy, draft.memory
    if known_helpless(line, draft):
        return _stand(line, job, draft, worked=False)
    # Whoever leaves or moves in this plan may leave room over.
    blocked = line.claim.blocked_at == memory.loosened and not (draft.leaving or draft.moved)
    open_ = open_to(line, job, draft) if draft.reserved else line.sizes[0].devices
    if not open_:
        if policy.explain and not blocked:
            _but_for_reservations(line, job, draft)
        return False
    if blocked and not (policy.preemption or policy.migration or policy.elasticity):
        return _stand(line, job, draft, worked=False)
    if line.claim.kept:
        return come_back(job, draft)
    fit = None if blocked else draft.fit(job, line.need, wanted_sizes(job, line))
    if fit is not None:
        size, spots = fit
        draft.place(job, size, spots, draft.why_placed(job, size))
        return True
    several = len(line.kinds) > 1
    hindered = bool(draft.reserved) and (several or open_ < line.sizes[0].devices)
    if (hindered or draft.places) and not blocked and _but_for_reservations(line, job, draft):
        # Nobody is disturbed for one that only has to wait for its turn.
        return _stand(line, job, draft, worked=False)
    line.claim.blocked_at = memory.loosened
    worked = (
        (policy.elasticity and shrink_for(line, job, draft))
        or (policy.migration and make_gap(line, job, draft))
        or (policy.preemption and push_off(line, job, draft))
    )
    if not worked and (policy.preemption or policy.migration or policy.elasticity):
        line.claim.helpless = moment(line, draft, open_)
    return _stand(line, job, draft, worked=worked)


def _but_for_reservations(line: Line, job: Job, draft: Draft) -> bool:
    """Whether there is room that is kept for others."""
    reserved, places = draft.reserved, draft.places
    draft.reserved, draft.places = {}, []
    try:
        fit = draft.fit(job, line.need, wanted_sizes(job, line))
    finally:
        draft.reserved, draft.places = reserved, places
    if fit is None:
        return False
    pools = {bin_.pool for bin_, _ in fit[1]}
    near = [kept for kept in places if kept.where and not pools.isdisjoint(kept.where)]
    draft.behind[line] = reserved.get(fit[1][0][0].pool.kind) or (near or places)[0]
    return True


def _stand(line: Line, job: Job, draft: Draft, *, worked: bool) -> bool:
    """What a job that found no place means for those behind it."""
    if worked:
        return True
    if limited(line, draft):
        return False
    draft.hungry.update(line.kinds)
    if len(line.kinds) == 1 and not line.claim.kept and patient(job, draft):
        _reserve(line, job, draft)
    return False


def _reserve(line: Line, job: Job, draft: Draft) -> None:
    """Keep devices for a job: by counting, or the nodes themselves where only some suit it."""
    kind, least = line.kinds[0], line.sizes[-1].devices
    where = line.claim.where
    if where is None:
        if kind not in draft.reserved:
            draft.reserve(job, kind, least)
        return
    if not draft.passes(job, kind, least):
        return
    taken = [kept.where for kept in draft.places if kept.where]
    apart = not any(mask & one.get(pool, 0) for one in taken for pool, mask in where.items())
    if where and apart and len(draft.places) < MOST_PLACES:
        draft.reserve(job, kind, least, where)


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
