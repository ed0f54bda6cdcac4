"""What is asked for many nodes in a moment is read at once, and each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

import pytest

from portal.consumers import readings
from portal.consumers.readings import Readings

pytestmark = pytest.mark.asyncio


class Book:
    """Answers ten times the node; may be made to fail for one, and to wait."""

    def __init__(self) -> None:
        self.read: list[set[int]] = []
        self.broken: int | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, nodes: Collection[int]) -> Mapping[int, int]:
        self.read.append(set(nodes))
        await self.open.wait()
        if self.broken in nodes:
            raise ValueError(self.broken)
        return {node: 10 * node for node in nodes if node < 100}


async def test_those_who_ask_together_share_a_reading() -> None:
    book = Book()
    states = Readings(book)
    assert await asyncio.gather(*(states.of(node) for node in (1, 2, 3, 2))) == [10, 20, 30, 20]
    assert book.read == [{1, 2, 3}]


async def test_who_asks_during_a_reading_is_in_the_next_one() -> None:
    """What is read already may be older than what made it ask."""
    book = Book()
    book.open.clear()
    states = Readings(book)
    early = asyncio.create_task(states.of(1))
    while not book.read:
        await asyncio.sleep(0.001)
    late = asyncio.create_task(states.of(1))
    await asyncio.sleep(0)
    book.open.set()
    assert [await early, await late] == [10, 10]
    assert book.read == [{1}, {1}]


async def test_one_nodes_failure_is_not_the_others() -> None:
    book = Book()
    book.broken = 2
    states = Readings(book)
    found = await asyncio.gather(*(states.of(node) for node in (1, 2, 3)), return_exceptions=True)
    assert (found[0], found[2]) == (10, 30)
    assert isinstance(found[1], ValueError)


async def test_a_node_that_is_not_there_is_told_so() -> None:
    with pytest.raises(KeyError):
        await Readings(Book()).of(100)


async def test_who_has_gone_keeps_nobody_waiting() -> None:
    book = Book()
    book.open.clear()
    states = Readings(book)
    gone, stays = (asyncio.create_task(states.of(node)) for node in (1, 2))
    while not book.read:
        await asyncio.sleep(0.001)
    gone.cancel()
    book.open.set()
    assert await stays == 20


async def test_very_many_are_read_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "AT_ONCE", 2)
    book = Book()
    states = Readings(book)
    assert await asyncio.gather(*(states.of(node) for node in range(5))) == [0, 10, 20, 30, 40]
    assert book.read == [{0, 1}, {2, 3}, {4}]
