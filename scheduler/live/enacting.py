"""Decisions into guarded updates; one that has gone stale is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Protocol

from portal.actions.leaving import leave
from portal.actions.locking import in_bulk, locked_job, locked_jobs
from portal.actions.placing import held_placement, place, place_all, present_placement
from portal.actions.prefetching import worthwhile
from portal.choices import JobState, MoveKind, PlacementState, Then
from portal.events import job_changed
from portal.models import Decision, Job, Node
from portal.unit import unit
from scheduler import planner
from scheduler.live.naming import device_row, job_row

SENTENCES_A_CYCLE = 500
"""Holds whose numbers changed are rewritten at most so many at a time; new reasons always."""


Rows = list[tuple[int, int, list[str]]]


class Promises(Protocol):
    """To whom devices are promised in one transaction."""

    def give(self, job: int, seats: Rows) -> bool:
        """Promise seats to a job, unless others were promised one of them."""


class Ground:
    """Where a planner may promise devices: here everywhere, for no other planner is at work.

    ``keep`` makes sure of that before each transaction; it raises if it is so no longer.
    """

    def __init__(self, keep: Callable[[], None] = lambda: None) -> None:
        self.keep = keep

    def sole(self, nodes: Iterable[int]) -> AbstractContextManager[Promises]:
        """Open a unit in which nobody else promises devices of these nodes."""
        return nullcontext(self)

    def give(self, job: int, seats: Rows) -> bool:
        return True

    def mine(self, job: Job) -> bool:
        """Whether a waiting job is this planner's to place."""
        return True


WHOLE = Ground()


def enact(plan: planner.Plan, now: datetime, ground: Ground = WHOLE) -> None:
    """Act on a plan: first those who leave, then those who come, then those who wait."""
    nodes = _nodes(plan)
    holds: list[planner.Hold] = []
    arrivals: list[planner.Place] = []
    for decision in plan:
        ground.keep()
        match decision:
            case planner.Place():
                arrivals.append(decision)
            case planner.Hold():
                holds.append(decision)
            case planner.Preempt():
                _preempt(decision, now)
            case planner.Migrate():
                _move(decision, MoveKind.MIGRATE, _rows(decision.seats, nodes), now, ground)
            case planner.Resize():
                _move(decision, MoveKind.RESIZE, _rows(decision.seats, nodes), now, ground)
    coming = {job_row(arrival.job): (arrival, _rows(arrival.seats, nodes)) for arrival in arrivals}
    in_bulk(coming, lambda ids: _place({id: coming[id] for id in ids}, now, ground))
    _hold(holds, now)


def _nodes(plan: planner.Plan) -> dict[str, int]:
    """The ids of all nodes that a plan gives seats on."""
    seats = [
        seat.node
        for decision in plan
        if isinstance(decision, planner.Place | planner.Migrate | planner.Resize)
        for seat in decision.seats
    ]
    return dict(Node.objects.filter(name__in=set(seats)).order_by().values_list("name", "id"))


def _rows(seats: Sequence[planner.Seat], nodes: dict[str, int]) -> Rows:
    return [
        (seat.rank, nodes[seat.node], [device_row(device) for device in seat.devices])
        for seat in seats
    ]


def _note(job: Job, kind: str, why: planner.Why, now: datetime) -> None:
    """Keep the answer on the job and in its history."""
    job.reason, job.sentence = why.reason.value, str(why)
    job.reason_numbers = {key: _plain(value) for key, value in why.numbers.items()}
    with unit() as opened:
        opened.heap(History).rows.append(
            Decision(
                job=job, at=now, kind=kind, reason=job.reason, numbers=job.reason_numbers,
                sentence=job.sentence,
            )
        )  # fmt: skip


class History:
    """Answers to be kept."""

    def __init__(self) -> None:
        self.rows: list[Decision] = []

    def write(self) -> None:
        Decision.objects.bulk_create(self.rows)


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | str) else str(value)


def _preempt(decision: planner.Preempt, now: datetime) -> None:
    with locked_job(job_row(decision.job)) as job:
        gainer = job_row(decision.beneficiary) if decision.beneficiary else None
        left = leave(
            job,
            MoveKind.PREEMPT,
            Then.QUEUE,
            now,
            reason=decision.why.reason.value,
            sentence=str(decision.why),
            beneficiary=gainer,
        )
        if left:
            _note(job, "preempt", decision.why, now)
            job.save(update_fields=["reason", "reason_numbers", "sentence"])


def _move(
    decision: planner.Migrate | planner.Resize,
    kind: MoveKind,
    seats: Rows,
    now: datetime,
    ground: Ground,
) -> None:
    ahead = worthwhile(job_row(decision.job))
    with (
        ground.sole(node for _, node, _ in seats) as promises,
        locked_job(job_row(decision.job)) as job,
    ):
        if not promises.give(job.id, seats):
            return
        asked_by = job.asked_by if decision.why.reason == planner.Reason.ASKED else None
        gainer = job_row(decision.beneficiary) if decision.beneficiary else None
        left = leave(
            job,
            kind,
            Then.MOVE,
            now,
            reason=decision.why.reason.value,
            sentence=str(decision.why),
            asked_by=asked_by,
            beneficiary=gainer,
            ahead=ahead,
        )
        if left:
            place(job, seats, now)
            _note(job, kind.value, decision.why, now)
            job.save(update_fields=["reason", "reason_numbers", "sentence"])


def _place(arrivals: dict[int, tuple[planner.Place, Rows]], now: datetime, ground: Ground) -> None:
    ground.keep()
    nodes = [node for _, seats in arrivals.values() for _, node, _ in seats]
    with ground.sole(nodes) as promises, locked_jobs(arrivals) as jobs:
        wishes = []
        for job in jobs:
            arrival, seats = arrivals[job.id]
            if ground.mine(job) and _may_come(job) and promises.give(job.id, seats):
                _note(job, "place", arrival.why, now)
                job.home = None
                wishes.append((job, seats))
        place_all(wishes, now)
        for job, _ in wishes:
            if job.state == JobState.WAITING:  # those that start were saved whole
                job.save(update_fields=["reason", "reason_numbers", "sentence", "home"])
            job_changed(job)


def _may_come(job: Job) -> bool:
    present = present_placement(job)
    return (
        job.state == JobState.WAITING
        and held_placement(job) is None
        and (present is None or present.state == PlacementState.PARKED)
    )


def _hold(holds: list[planner.Hold], now: datetime) -> None:
    if not holds:
        return
    answered = {job_row(hold.job): hold.why for hold in holds}
    waiting = Job.objects.filter(state=JobState.WAITING)
    # Of thousands most have their answer already: they are not made instances of.
    told = {id: said for id, said in waiting.values_list("id", "sentence") if id in answered}
    stale = [id for id, said in told.items() if said != str(answered[id])]
    known = waiting.select_related("tenant").in_bulk(stale)
    news = [(known[id], why) for id, why in answered.items() if id in known]
    if news:
        with unit():
            _tell(news, now)


def _tell(news: list[tuple[Job, planner.Why]], now: datetime) -> None:
    """Give waiting jobs their new sentences."""
    rewritten = 0
    for job, why in news:
        told_before = job.reason == why.reason.value
        if told_before and rewritten >= SENTENCES_A_CYCLE:
            continue
        rewritten += 1
        numbers = {key: _plain(value) for key, value in why.numbers.items()}
        changed = Job.objects.filter(pk=job.pk, state=JobState.WAITING).update(
            reason=why.reason.value, reason_numbers=numbers, sentence=str(why)
        )
        if changed:
            if not told_before:
                _note(job, "hold", why, now)
            job.sentence = str(why)
            job_changed(job)
