"""Whose turn it is."""

from __future__ import annotations

from dataclasses import replace

from scheduler.planner import PRESETS, Memory, Policy
from scheduler.planner.snapshot import Job
from scheduler.planner.turns import Turns
from tests.planner.sketches import NOW, given, job, node


def memory_of(jobs: list[Job], policy: Policy) -> Memory:
    memory = Memory()
    memory.take_in(given([node("n1")], jobs), policy)
    return memory


def order(memory: Memory) -> list[str]:
    """The jobs in the order of their turns, each served at once."""
    memory.queue.rewind()
    turns, found = Turns(memory.queue), []
    while (line := turns.next()) is not None:
        found.append(str(line.job.id))
        if memory.queue.advance(line):
            turns.again(line)
    return found


def test_lines_take_turns_by_their_first_jobs() -> None:
    jobs = [job(f"j{at}", 1 + at % 3, submitted_at=NOW - 100.0 + at) for at in range(9)]
    memory = memory_of(jobs, PRESETS["fifo"])
    assert order(memory) == [f"j{at}" for at in range(9)]
    assert order(memory) == [f"j{at}" for at in range(9)]


def test_the_order_follows_who_comes_and_goes() -> None:
    jobs = [job(f"j{at}", 1 + at % 2, submitted_at=NOW - 100.0 + at) for at in range(4)]
    memory = memory_of(jobs, PRESETS["fifo"])
    early = job("j9", 2, submitted_at=NOW - 500.0)
    snapshot = given([node("n1")], [early, *jobs[1:3], replace(jobs[3], priority=1.0)])
    memory.take_in(snapshot, PRESETS["fifo"])
    assert order(memory) == ["j3", "j9", "j1", "j2"]
