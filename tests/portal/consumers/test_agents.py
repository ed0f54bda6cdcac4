"""Facts that come faster than they are settled are taken together, of each replica the newest."""

from __future__ import annotations

import asyncio

import pytest

from agents.protocol import Facts, ReplicaFact, State
from portal.consumers.agents import Reports

pytestmark = pytest.mark.asyncio


def fact(job: int, state: State) -> ReplicaFact:
    return ReplicaFact(job=job, rank=0, epoch=1, state=state)


async def test_the_newest_of_each_replica_is_taken_and_none_is_lost() -> None:
    reports = Reports()
    reports.add(Facts(number=1, replicas=[fact(1, State.RUNNING), fact(2, State.ABSENT)]))
    reports.add(Facts(number=2, replicas=[fact(1, State.EXITED)]))
    taken = await reports.next()
    assert taken.number == 2
    assert {f.job: f.state for f in taken.replicas} == {1: State.EXITED, 2: State.ABSENT}


async def test_what_was_taken_is_not_taken_again() -> None:
    reports = Reports()
    reports.add(Facts(number=1, replicas=[fact(1, State.RUNNING)]))
    await reports.next()
    waiting = asyncio.ensure_future(reports.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    reports.add(Facts(number=3, replicas=[]))
    assert (await waiting).replicas == []
