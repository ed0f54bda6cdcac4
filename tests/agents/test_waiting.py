"""Waits can be broken off at any moment, and tasks end."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from agents import waiting
from agents.waiting import either, end

pytestmark = pytest.mark.asyncio


async def test_a_cancellation_in_the_moment_of_the_event_is_not_lost() -> None:
    event = asyncio.Event()

    async def wait_for_ever() -> None:
        while True:
            await either(event, 60.0)
            event.clear()

    task = asyncio.create_task(wait_for_ever())
    await asyncio.sleep(0)
    event.set()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(10):
            await task


async def test_a_wait_ends_in_time_without_the_event() -> None:
    event = asyncio.Event()
    await either(event, 0.001)
    assert not event.is_set()


async def test_a_task_that_swallows_a_cancellation_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "AGAIN_S", 0.001)

    async def deaf_once() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def broken() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError

    tasks = [asyncio.create_task(deaf_once()), asyncio.create_task(broken())]
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await end(tasks)
    assert tasks[0].cancelled()
    assert isinstance(tasks[1].exception(), ValueError)
