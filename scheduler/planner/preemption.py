"""Push off the fewest and cheapest, and prove that each of them is needed."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.planner.costs import loss
from scheduler.planner.decisions import Why
from scheduler.planner.draft import Draft
from scheduler.planner.fleet import Bin, Pool
from scheduler.planner.ledger import Held
from scheduler.planner.needs import Size, natural
from scheduler.planner.ordering import Line
from scheduler.planner.placement import find
from scheduler.planner.reach import by_pushing
from scheduler.planner.reasons import Reason
from scheduler.planner.search import Search
from scheduler.planner.snapshot import Job, JobId
from scheduler.planner.victims import Pusher, yielders


def push_off(line: Line, job: Job, draft: Draft) -> bool:
    """Place ``job`` where others have to leave for it."""
    if by_pushing(line, draft) < line.sizes[-1].devices:
        return False
    pusher = Pusher(line, job, draft)
    index = yielders(draft, pusher)
    if not index:
        return False
    for size in (line.sizes[0], line.sizes[-1])[: len(line.sizes)]:
        pools = draft.permitted(job, line.need, size.devices, idle=False)
        found = _own_first(pusher, line, size, pools) if not pools else None
        if pools:
            search = Search(pusher, line.need, size, index)
            found = search.one_bin(pools)
            if not found or (len(found) > 1 and size.groups > 1):
                wider = search.several_bins(pools)
                found = wider if wider and (not found or len(wider) < len(found)) else found
        if found and _carry_out(pusher, line, size, found):
            return True
        # With time others may be cheaper to ask, and with them it may work.
        draft.in_vain = draft.in_vain or bool(found)
    return False


def _own_first(pusher: Pusher, line: Line, size: Size, pools: Sequence[Pool]) -> list[Held] | None:
    """Where the tenant's own limit stands in the way: the fewest of its own lesser jobs."""
    draft = pusher.draft
    if len(line.kinds) != 1 or not draft.passes(pusher.job, line.kinds[0], size.devices):
        return None
    refusal = draft.refusal(line.account, line.kinds[0], size.devices)
    if refusal is None or refusal.account is None or refusal.reason is not Reason.QUOTA:
        return None
    able = [
        held
        for held in draft.ledger.held.values()
        if held.account is not None
        and refusal.account in held.account.path
        and held.kind == line.kinds[0]
        and pusher.right(held) is not None
    ]
    able.sort(
        key=lambda held: (
            -held.count, loss(held.job, draft.policy, draft.now), natural(held.job.id),
        )
    )  # fmt: skip
    chosen: list[Held] = []
    missing = refusal.short
    for held in able:
        if missing <= 0:
            break
        single = [other for other in able if other.count >= missing and other not in chosen]
        last = min(
            single,
            key=lambda one: (one.count, loss(one.job, draft.policy, draft.now)),
            default=held,
        )
        chosen.append(last)
        missing -= last.count
    return chosen if missing <= 0 else None


def _carry_out(pusher: Pusher, line: Line, size: Size, victims: list[Held]) -> bool:
    """Let them leave and place the job, if that works on the ledger too."""
    draft, job = pusher.draft, pusher.job
    reasons: list[Reason] = []
    with draft.ledger.tentatively() as attempt:
        for held in victims:
            reason = pusher.right(held)
            if reason is None:
                return False
            reasons.append(reason)
            draft.ledger.take(held.job.id)
        pools = draft.permitted(job, line.need, size.devices)
        spots = find(pools, line.need, size) if pools else None
        if spots is None:
            return False
        why = Why(reason=Reason.MADE_ROOM, numbers={"count": len(victims)})
        after = tuple(sorted((held.job.id for held in victims), key=natural))
        draft.place(job, size, spots, why, after)
        attempt.keep()
    for held, reason in zip(victims, reasons, strict=True):
        draft.push(held, job, reason)
    if draft.accounts.keepers or (1 < len(victims) <= 8 and size.groups > 1):
        # One who leaves may open a place elsewhere too: by what it held on other nodes, or because
        # what is set aside for others is a count and not a place.
        for held in victims:
            _let_stay(draft, job.id, held)
    return True


def spare(draft: Draft) -> None:
    """Let stay whoever turned out not to be needed, now that the whole plan is written."""
    if not draft.leaving or len(draft.placed) < 2:
        return
    draft.reserved.clear()
    before = -1
    while before != len(draft.leaving):
        # One who stays may send another's beneficiary elsewhere, which may open a place again.
        before = len(draft.leaving)
        for place in [place for place in draft.placed.values() if place.after]:
            for id_ in place.after:
                leaving = draft.leaving.get(id_)
                if leaving is not None and leaving.beneficiary == place.job:
                    _let_stay(draft, place.job, draft.pushed[id_])


def _let_stay(draft: Draft, beneficiary: JobId, victim: Held) -> None:
    """Put one victim back, if its beneficiary fits without it."""
    place = draft.placed[beneficiary]
    job, size, need = draft.plans[beneficiary]
    ledger = draft.ledger
    if any(_taken(part.bin, part.mask, beneficiary) for part in victim.parts):
        return
    with ledger.tentatively() as attempt:
        before = ledger.take(beneficiary)
        ledger.put(victim)
        if draft.policy.quotas and victim.account and victim.account.exceeds(victim.kind):
            return
        pools = draft.permitted(job, need, size.devices)
        spots = find(pools, need, size) if pools else None
        if spots is None:
            return
        rest = tuple(id_ for id_ in place.after if id_ != victim.job.id)
        why = Why(reason=Reason.MADE_ROOM, numbers={"count": len(rest)})
        draft.use(before, -1)
        draft.place(job, size, spots, why if rest else draft.why_placed(job, size), rest)
        attempt.keep()
    del draft.leaving[victim.job.id]


def _taken(bin_: Bin, mask: int, but: JobId) -> bool:
    """Whether someone else holds one of these devices now."""
    return any(held & mask for id_, held in bin_.jobs.items() if id_ != but)
