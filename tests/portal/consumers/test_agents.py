"""What an agent reports while earlier reports are being taken."""

from __future__ import annotations

import pytest

from agents.protocol import Facts, ReplicaFact, State
from portal.consumers.agents import Reports


@pytest.mark.asyncio
async def test_reports_that_wait_become_one_and_the_newest_counts() -> None:
    reports = Reports()
    for number, state in enumerate((State.RUNNING, State.FROZEN)):
        fact = ReplicaFact(job=1, rank=0, epoch=1, state=state)
        reports.add(Facts(number=number, replicas=[fact], prefetched=["a", "b"][:number]))
    other = ReplicaFact(job=2, rank=0, epoch=1, state=State.RUNNING)
    reports.add(Facts(number=2, replicas=[other], prefetched=["a", "b"]))
    taken = await reports.next()
    assert (taken.number, taken.prefetched) == (2, ["a", "b"])
    assert {(fact.job, fact.state) for fact in taken.replicas} == {
        (1, State.FROZEN),
        (2, State.RUNNING),
    }
