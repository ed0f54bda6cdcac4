"""The board tells everything after each change, and forgets what it has told absent."""

from __future__ import annotations

import asyncio

import pytest

from agents.facts import Board
from agents.protocol import Facts, ReplicaFact, State

pytestmark = pytest.mark.asyncio


def fact(state: State, job: int = 1, rank: int = 0, error: str = "") -> ReplicaFact:
    return ReplicaFact(job=job, rank=rank, epoch=1, state=state, error=error)


class Listener:
    """Keeps what it is sent; may be made to fail."""

    def __init__(self) -> None:
        self.heard: list[Facts] = []
        self.broken = False
        self.news = asyncio.Event()

    async def __call__(self, facts: Facts) -> None:
        if self.broken:
            raise ConnectionError
        self.heard.append(facts)
        self.news.set()

    async def next(self) -> Facts:
        async with asyncio.timeout(20):
            await self.news.wait()
        self.news.clear()
        return self.heard[-1]


async def test_all_is_told_at_once_and_changes_after() -> None:
    board, listener = Board(), Listener()
    board.put("a", fact(State.RUNNING))
    telling = asyncio.create_task(board.tell(listener))
    assert [f.state for f in (await listener.next()).replicas] == [State.RUNNING]
    board.renew(7)
    board.put("b", fact(State.PREPARING, job=2))
    told = await listener.next()
    assert (told.number, len(told.replicas)) == (7, 2)
    telling.cancel()


async def test_many_changes_in_a_moment_are_one_message() -> None:
    board, listener = Board(), Listener()
    telling = asyncio.create_task(board.tell(listener))
    await listener.next()
    for job in range(1, 50):
        board.put(str(job), fact(State.RUNNING, job))
    assert len((await listener.next()).replicas) == 49
    assert len(listener.heard) == 2
    telling.cancel()


async def test_absent_is_told_once_and_only_to_one_who_listens() -> None:
    board, listener = Board(), Listener()
    board.put("a", fact(State.ABSENT))
    listener.broken = True
    with pytest.raises(ConnectionError):
        await board.tell(listener)
    listener.broken = False
    telling = asyncio.create_task(board.tell(listener))
    assert [f.state for f in (await listener.next()).replicas] == [State.ABSENT]
    board.renew(2)
    assert (await listener.next()).replicas == []
    telling.cancel()


async def test_what_came_back_meanwhile_is_kept() -> None:
    board = Board()

    async def slowly(facts: Facts) -> None:
        board.put("a", fact(State.PREPARING))
        await asyncio.sleep(0)

    board.put("a", fact(State.ABSENT))
    telling = asyncio.create_task(board.tell(slowly))
    await asyncio.sleep(0.02)
    assert board.facts["a"].state is State.PREPARING
    telling.cancel()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for others waits as long as it takes."""
    for name in ("DULL_S", "PEERS_S"):
        monkeypatch.setattr(f"agents.facts.{name}", 1000.0)


@pytest.mark.usefixtures("patient")
async def test_replicas_of_a_job_are_told_together_once_all_here_are_as_far() -> None:
    board, listener = Board(), Listener()
    for rank in range(2):
        board.put(f"a{rank}", fact(State.RUNNING, rank=rank))
    board.put("b", fact(State.RUNNING, job=2))
    telling = asyncio.create_task(board.tell(listener))
    await listener.next()
    board.put("a0", fact(State.FROZEN, rank=0))
    board.renew(2)
    await asyncio.sleep(0)
    assert len(listener.heard) == 1, "nothing follows from one alone"
    board.put("a1", fact(State.FROZEN, rank=1))
    told = await listener.next()
    assert [f.state for f in told.replicas] == [State.FROZEN, State.FROZEN, State.RUNNING]
    assert told.number == 2
    telling.cancel()


@pytest.mark.usefixtures("patient")
async def test_an_error_does_not_wait_for_peers() -> None:
    board, listener = Board(), Listener()
    for rank in range(2):
        board.put(str(rank), fact(State.RUNNING, rank=rank))
    telling = asyncio.create_task(board.tell(listener))
    await listener.next()
    board.put("0", fact(State.FROZEN, error="freeze-failed"))
    assert (await listener.next()).replicas[0].error == "freeze-failed"
    telling.cancel()


async def test_one_that_waits_for_a_peer_is_told_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agents.facts.PEERS_S", 0.01)
    board, listener = Board(), Listener()
    for rank in range(2):
        board.put(str(rank), fact(State.RUNNING, rank=rank))
    telling = asyncio.create_task(board.tell(listener))
    await listener.next()
    board.put("0", fact(State.FROZEN))
    assert [f.state for f in (await listener.next()).replicas] == [State.FROZEN, State.RUNNING]
    telling.cancel()
