"""The idealised policies against a scheduler of a few lines that shares no code with them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from scheduler.planner import PRESETS, Job, Memory, Phase, Policy, Roster, Snapshot, plan
from scheduler.planner.decisions import Hold, Place, Preempt
from tests.planner.sketches import node

Row = tuple[int, int, int, int]  # submitted, row, devices, seconds


def trace(seed: int, count: int) -> list[Row]:
    dice = random.Random(seed)
    sizes = [1, 1, 1, 2, 4, 8, 16]
    rows = [
        (dice.randrange(count * 40), row, dice.choice(sizes), dice.randrange(1, 3000))
        for row in range(count)
    ]
    return sorted(rows)


def plainly(
    rows: list[Row], capacity: int, key: Callable[[Row, int], float], *, preempt: bool, strict: bool
) -> tuple[dict[int, int], int]:
    """Ends and preemptions, by sorting everything at every event."""
    left = {row[1]: row[3] for row in rows}
    info = {row[1]: row for row in rows}
    running: dict[int, int] = {}
    waiting: list[int] = []
    ends: dict[int, int] = {}
    pushed = now = at = 0
    while len(ends) < len(rows):
        then = min([now + left[id_] for id_ in running] + [row[0] for row in rows[at : at + 1]])
        for id_ in running:
            left[id_] -= then - now
        now = then
        for id_ in [id_ for id_ in running if not left[id_]]:
            del running[id_]
            ends[id_] = now
        arrived = [row[1] for row in rows[at:] if row[0] == now]
        waiting += arrived
        at += len(arrived)
        order = sorted(
            waiting + (list(running) if preempt else []),
            key=lambda id_: (key(info[id_], left[id_]), info[id_][0], id_),
        )
        free = capacity - (0 if preempt else sum(info[id_][2] for id_ in running))
        chosen = []
        for id_ in order:
            if info[id_][2] <= free:
                free -= info[id_][2]
                chosen.append(id_)
            elif strict:
                break
        if preempt:
            pushed += len([id_ for id_ in running if id_ not in chosen])
            waiting += [id_ for id_ in running if id_ not in chosen]
            running = {id_: 0 for id_ in running if id_ in chosen}
        waiting = [id_ for id_ in waiting if id_ not in chosen]
        running.update(dict.fromkeys(chosen, 0))
    return ends, pushed


def planned(rows: list[Row], capacity: int, policy: Policy) -> tuple[dict[int, int], int]:
    """The same through the planner, whose plan is carried out by the letter."""
    roster, memory = Roster(), Memory()
    nodes = (node("pool", capacity),)
    ends: dict[int, int] = {}
    at = pushed = now = 0
    while len(ends) < len(rows):
        now = int(min(_moments(roster, rows, at)))
        over = [job for job in roster if job.phase is Phase.RUNNING and _end(job) == now]
        ends.update({int(job.id): now for job in over})
        fresh = []
        while at < len(rows) and rows[at][0] == now:
            fresh.append(_arrival(*rows[at]))
            at += 1
        roster = roster.changed(fresh, [job.id for job in over])
        snapshot = Snapshot(now=now, nodes=nodes, jobs=roster, tenants=(), tiers=())
        decisions = plan(snapshot, policy, memory)
        changed = []
        for decision in decisions:
            job = roster.get(decision.job)
            assert job is not None
            done = job.worked_s + (now - job.measured_at if job.phase is Phase.RUNNING else 0)
            job = replace(job, worked_s=done, measured_at=now)
            if isinstance(decision, Place):
                changed.append(replace(job, phase=Phase.RUNNING, started_at=now))
            elif isinstance(decision, Preempt):
                changed.append(replace(job, phase=Phase.WAITING, started_at=None))
                pushed += 1
            else:
                assert isinstance(decision, Hold)
        roster = roster.changed(changed)
    return ends, pushed


def _arrival(submitted: int, row: int, devices: int, seconds: int) -> Job:
    return Job(
        id=str(row),
        tenant="",
        tier="",
        phase=Phase.WAITING,
        replicas=devices,
        submitted_at=submitted,
        expected_s=seconds,
        measured_at=submitted,
    )


def _end(job: Job) -> float:
    return job.measured_at + job.expected_s - job.worked_s


def _moments(roster: Roster, rows: list[Row], at: int) -> Iterator[float]:
    yield from (_end(job) for job in roster if job.phase is Phase.RUNNING)
    if at < len(rows):
        yield rows[at][0]


CASES: list[tuple[str, Callable[[Row, int], float], bool, bool]] = [
    ("pool-fifo", lambda row, left: 0, False, True),
    ("pool-fifo-backfill", lambda row, left: 0, False, False),
    ("pool-sjf", lambda row, left: row[3], False, False),
    ("pool-srtf", lambda row, left: left, True, False),
    ("pool-srsf", lambda row, left: left * row[2], True, False),
]


@pytest.mark.parametrize(("name", "key", "preempt", "strict"), CASES, ids=lambda one: str(one)[:12])
@pytest.mark.parametrize("explain", [True, False])
def test_every_job_ends_when_a_plain_scheduler_ends_it(
    name: str, key: Callable[[Row, int], float], preempt: bool, strict: bool, explain: bool
) -> None:
    for seed in range(1 if explain else 2):
        rows = trace(seed, 100)
        policy = replace(PRESETS[name], explain=explain)
        expected = plainly(rows, 20, key, preempt=preempt, strict=strict)
        assert planned(rows, 20, policy) == expected
