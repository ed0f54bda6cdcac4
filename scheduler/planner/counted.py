"""The idealised fleet: one counted pool without places, for figures that can be told exactly."""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace

from scheduler.planner.claims import Key
from scheduler.planner.decisions import Decision, Hold, Place, Plan, Preempt, Why
from scheduler.planner.memory import Memory
from scheduler.planner.ordering import Line, rank_in_time
from scheduler.planner.policy import Backfill, Policy, Push
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import Job, JobId, Snapshot
from scheduler.planner.turns import ShiftingTurns, Turns

STARTS = Why(reason=Reason.FITS)
BLOCKED = Why(reason=Reason.BUSY)


def counted(snapshot: Snapshot, policy: Policy, memory: Memory) -> Plan:
    """Answer with places without seats; ties go by submission, then id."""
    capacity = sum(pool.free for pool in memory.fleet.pools)
    if policy.preemption and policy.push is Push.ORDER:
        decisions = _preemptive(memory, policy, snapshot.now, capacity)
    else:
        decisions = _started(memory, policy, snapshot.now, capacity - memory.running)
    if policy.explain:
        decisions += _holds(memory, policy, {decision.job for decision in decisions})
    return tuple(decisions)


def _started(memory: Memory, policy: Policy, now: float, free: int) -> list[Decision]:
    """In order, whoever fits; in strict order the first who does not fit ends it."""
    decisions: list[Decision] = []
    strict = policy.backfill is Backfill.NONE
    queue = memory.queue
    turns: Turns | ShiftingTurns
    queue.rewind()
    if queue.shifting:
        turns = ShiftingTurns(queue.lines.values(), policy, now, memory.ledger)
    else:
        turns = Turns(queue)
    while free and (line := turns.next()) is not None:
        wanted = line.sizes[0].devices
        if wanted > free:
            if strict:
                break
            continue
        decisions.append(Place(job=line.job.id, seats=(), why=STARTS))
        free -= wanted
        if queue.advance(line):
            turns.again(line)
    return decisions


def _preemptive(memory: Memory, policy: Policy, now: float, capacity: int) -> list[Decision]:
    """Give the pool to all jobs in order, running or not; who gets nothing leaves."""
    heap: list[tuple[Key, JobId, Line | None, Job]] = []
    for held in memory.ledger.held.values():
        heap.append((rank_in_time(held.job, policy, now), held.job.id, None, held.job))
    queue = memory.queue
    queue.rewind()
    for line in queue.lines.values():
        if line.sizes[0].devices <= capacity:
            key, job = line.entries[0]
            heap.append((key, job.id, line, job))
    heapify(heap)
    places: list[Decision] = []
    staying: set[JobId] = set()
    last: JobId | None = None
    while heap and capacity:
        _, id_, queued, job = heap[0]
        fits = job.devices <= capacity
        if fits:
            capacity -= job.devices
            last = id_
            if queued is None:
                staying.add(id_)
            else:
                places.append(Place(job=id_, seats=(), why=STARTS))
        if queued is not None and fits and queue.advance(queued):
            key, following = queued.entries[queued.at]
            heapreplace(heap, (key, following.id, queued, following))
        else:
            heappop(heap)
    why = Why(reason=Reason.ORDER, numbers={"beneficiary": last})
    leaving: list[Decision] = [
        Preempt(job=id_, remedy=held.job.remedy, why=why, beneficiary=last)
        for id_, held in memory.ledger.held.items()
        if id_ not in staying
    ]
    return leaving + places


def _holds(memory: Memory, policy: Policy, answered: set[JobId]) -> list[Decision]:
    return [
        Hold(job=job.id, why=BLOCKED)
        for line in memory.queue.lines.values()
        for _, job in line.entries
        if job.id not in answered
    ]
