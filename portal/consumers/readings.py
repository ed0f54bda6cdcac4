"""What is asked for many nodes at the same moment is read for all of them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

MOMENT_S = 0.001
"""The nodes of one job are told within this time of each other that something else is wanted."""
AT_ONCE = 64
"""Nodes in one reading."""


class Readings(Generic[T]):
    """Reads for nodes one after the other; whoever asks meanwhile is in the next reading."""

    def __init__(self, read: Callable[[Collection[int]], Awaitable[Mapping[int, T]]]) -> None:
        self._read = read
        self._asked: WeakKeyDictionary[asyncio.AbstractEventLoop, _Asked[T]] = WeakKeyDictionary()

    async def of(self, node: int) -> T:
        """What a reading that begins from now on says of a node; ``KeyError`` if nothing."""
        loop = asyncio.get_running_loop()
        asked = self._asked.setdefault(loop, _Asked())
        answer: asyncio.Future[T] = loop.create_future()
        asked.waiting.append((node, answer))
        if asked.reading is None:
            asked.reading = asyncio.create_task(self._keep_reading(asked))
        return await answer

    async def _keep_reading(self, asked: _Asked[T]) -> None:
        try:
            await asyncio.sleep(MOMENT_S)
            while asked.waiting:
                now, asked.waiting = asked.waiting[:AT_ONCE], asked.waiting[AT_ONCE:]
                await self._answer(now)
        finally:
            asked.reading = None

    async def _answer(self, waiting: Waiting[T]) -> None:
        """Answer all; if that fails, each by a reading of its own, so that one's is not theirs."""
        try:
            found = await self._read({node for node, _ in waiting})
        except Exception as failure:
            if len(waiting) > 1:
                for one in waiting:
                    await self._answer([one])
            else:
                _settle(waiting[0][1], failure=failure)
            return
        for node, answer in waiting:
            if node in found:
                _settle(answer, found[node])
            else:
                _settle(answer, failure=KeyError(node))


Waiting = list[tuple[int, "asyncio.Future[T]"]]


class _Asked(Generic[T]):
    """Who waits within one event loop."""

    def __init__(self) -> None:
        self.waiting: Waiting[T] = []
        self.reading: asyncio.Task[None] | None = None


def _settle(answer: asyncio.Future[T], *found: T, failure: Exception | None = None) -> None:
    if answer.done():  # who asked has gone
        return
    if failure is not None:
        answer.set_exception(failure)
    else:
        answer.set_result(found[0])
