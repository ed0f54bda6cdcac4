"""Whom a cycle need not search for again: what was refused to a claim stays refused to it."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.planner.claims import Claim, Key, Moment
from scheduler.planner.draft import Draft
from scheduler.planner.explaining import MOST_KNOWN, never
from scheduler.planner.ledger import NEVER
from scheduler.planner.ordering import Line, standing
from scheduler.planner.policy import Backfill, Ordering, Push
from scheduler.planner.promises import owed, remaining
from scheduler.planner.reach import out_of_reach
from scheduler.planner.snapshot import Job
from scheduler.planner.turns import ShiftingTurns, Turns


def look(claim: Claim, draft: Draft) -> None:
    """Work out once per fleet which kinds and bins suit a claim, and if it can ever be granted."""
    memory = draft.memory
    if claim.looked_at == memory.ground:
        return
    claim.looked_at = memory.ground
    known = memory.suiting.get(claim.need)
    if known is None:
        if len(memory.suiting) >= MOST_KNOWN:
            memory.suiting.clear()
        known = memory.suiting[claim.need] = draft.fleet.suited(claim.need)
    claim.kinds, claim.where = known
    line = next(iter(claim.lines))
    claim.structural = never(line.entries[0][1], line, draft)


def begin(draft: Draft) -> Turns | ShiftingTurns | None:
    """The lines in order; ``None`` if nobody can be served and nobody waits for an answer.

    Lines that cannot be served are left out where nobody would notice: they get no answer, and the
    first of each tenant that may have devices kept for it is there all the same. Whoever leaves or
    moves may leave room over for them: then they are recalled.
    """
    policy, queue = draft.policy, draft.memory.queue
    remedies = policy.preemption or policy.migration or policy.elasticity
    alone = policy.explain or draft.leaving or draft.moved
    if not alone and (remedies or queue.shifting):
        granted, refused, out = _sifted(draft)
        if not granted:
            starve((*refused, *out), draft)
            return None
        if queue.shifting and queue.silent and policy.backfill is not Backfill.NONE:
            lines = [line for claim in (*granted, *refused) for line in claim.lines]
            lines += _patient(out, draft)
            return ShiftingTurns(lines, policy, draft.now, draft.ledger, out)
    if not queue.shifting:
        return Turns(queue)
    for claim in queue.claims.values():
        look(claim, draft)
    return ShiftingTurns(queue.lines.values(), policy, draft.now, draft.ledger)


def _sifted(draft: Draft) -> tuple[list[Claim], list[Claim], list[Claim]]:
    """Claims that may be granted, those that will not be as it is, those that cannot be at all."""
    granted: list[Claim] = []
    refused: list[Claim] = []
    out: list[Claim] = []
    for claim in draft.memory.queue.claims.values():
        look(claim, draft)
        if claim.structural is not None:
            continue
        if out_of_reach(next(iter(claim.lines)), draft):
            (out if claim.where is None and len(claim.kinds) == 1 else refused).append(claim)
        elif all(known_helpless(line, draft) for line in claim.lines):
            refused.append(claim)
        else:
            granted.append(claim)
    return granted, refused, out


def starve(claims: Iterable[Claim], draft: Draft) -> None:
    """Write down for which kinds of devices someone waits who may have them."""
    if not draft.memory.elastic:
        return
    for claim in claims:
        if not limited(next(iter(claim.lines)), draft):
            draft.hungry.update(claim.kinds)


def limited(line: Line, draft: Draft) -> bool:
    """Whether the quota of its tenant holds a line back."""
    return draft.refusal(line.account, line.kinds[0], line.sizes[-1].devices) is not None


def patient(job: Job, draft: Draft) -> bool:
    """Whether a job has waited so long that devices are kept for it."""
    policy = draft.policy
    return policy.backfill is Backfill.EASY or (
        policy.backfill is Backfill.SKIP and draft.now - job.waiting_since > policy.patience_s
    )


def _patient(claims: Iterable[Claim], draft: Draft) -> list[Line]:
    """Of each tenant and kind of devices the first line that may have some kept for it."""
    policy, now = draft.policy, draft.now
    if policy.backfill is Backfill.SKIP and policy.patience_s == NEVER:
        return []
    first: dict[object, tuple[Key, Line]] = {}
    for claim in claims:
        for line in claim.lines:
            if patient(line.entries[0][1], draft):
                whose = (line.account, claim.kinds)
                key, known = standing(line, policy, now, ()), first.get(whose)
                if known is None or key < known[0]:
                    first[whose] = (key, line)
    return [line for _, line in first.values()]


def open_to(line: Line, job: Job, draft: Draft) -> int:
    """The largest size that reservations leave a job, in devices; 0 if they leave it none.

    1 if there are several kinds, of which they may leave it some.
    """
    if len(line.kinds) > 1:
        return int(any(draft.passes(job, kind, line.sizes[-1].devices) for kind in line.kinds))
    kind, least = line.kinds[0], line.sizes[-1].devices
    if kind not in draft.reserved:
        return line.sizes[0].devices
    if not draft.passes(job, kind, least):
        return 0
    larger = (one.devices for one in line.sizes[:-1] if draft.passes(job, kind, one.devices))
    return next(larger, least)


def moment(line: Line, draft: Draft, open_: int) -> Moment | None:
    """What a search for others to ask depends on; ``None``: on what is not told here."""
    policy, several = draft.policy, len(line.kinds) > 1
    if policy.preemption and policy.push is Push.ORDER and policy.ordering is Ordering.LAS:
        return None
    if several and draft.reserved:
        return None
    epoch, mark, job = draft.memory.epoch, draft.ledger.mark, line.job
    place = line.entries[line.at][0] if policy.push is Push.ORDER else ()
    return Moment(epoch, mark, job.id, place, _short(line, draft), _gain(job, draft), open_)


def _gain(job: Job, draft: Draft) -> float:
    """Seconds of work for which others may be moved."""
    policy = draft.policy
    return min(remaining(job, draft.now), policy.gain_horizon_s) if policy.migration else 0.0


def _short(line: Line, draft: Draft) -> bool:
    """Whether its promise gives the job of a line a right; once it does, it goes on doing so."""
    policy, promise = draft.policy, line.tier.promise
    if not (promise > 0 and policy.promises and policy.tiers):
        return False
    job, place = line.job, line.place
    if place is not None and place.job is job and draft.now < place.until:
        return place.short
    return owed(job, promise, draft.now) > 0


def refused_to_all(claim: Claim, draft: Draft) -> bool:
    """Whether what was refused just now is refused to all lines of a claim that owe no more."""
    known, policy = claim.helpless, draft.policy
    return (
        known is not None
        and known.mark == draft.ledger.mark
        and known.epoch == draft.memory.epoch
        and known.open == claim.sizes[0].devices
        and (known.gain >= policy.gain_horizon_s or not policy.migration)
        and policy.push is not Push.ORDER
    )


def passed_over(line: Line, draft: Draft, *, refused: bool) -> bool:
    """Whether it would come to nothing to ask for a line, and stand in nobody's way.

    ``refused``: others of its claim were, just now.
    """
    claim, known = line.claim, line.claim.helpless
    if len(claim.kinds) != 1 or claim.where is not None or claim.kept:
        return False
    job, kind = line.job, claim.kinds[0]
    kept = draft.reserved.get(kind)
    if kept is not None and not draft.passes(job, kind, claim.sizes[-1].devices):
        return True
    if not refused or known is None or not (known.short or not _short(line, draft)):
        return False
    return kept is not None or not patient(job, draft)


def known_helpless(line: Line, draft: Draft) -> bool:
    """Whether nothing changed since one of its claim found neither room nor anybody to ask.

    Reservations may have come since: they only take away sizes, each of which was tried by itself.
    With several kinds of devices they may send a search elsewhere.
    """
    known = line.claim.helpless
    if known is None or known.epoch != draft.memory.epoch or known.mark != draft.ledger.mark:
        return False
    job = line.job
    if known.job != job.id and not _covered(known, line, job, draft):
        return False
    if not known.short and _short(line, draft):
        return False
    if known.open == line.sizes[0].devices:
        return not draft.reserved or len(line.kinds) == 1
    return bool(draft.reserved) and 0 < open_to(line, job, draft) <= known.open


def _covered(known: Moment, line: Line, job: Job, draft: Draft) -> bool:
    """Whether another job of the same claim can do no more than the one that was searched for."""
    if draft.policy.push is Push.ORDER and line.entries[line.at][0] < known.place:
        return False
    return _gain(job, draft) <= known.gain
