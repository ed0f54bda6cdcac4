"""Waits that end in time, and tasks that end when they are told to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from typing import Any

AGAIN_S = 1.0
"""Seconds after which a task that was cancelled and goes on is cancelled again."""


async def either(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, but no longer than this.

    Not by ``asyncio.wait_for``: before Python 3.12 it swallows a cancellation that comes in the
    same moment as the event, and whoever cancelled then waits for ever.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks until all have ended, however they end."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        ended, pending = await asyncio.wait(pending, timeout=AGAIN_S)
        for task in ended:
            if not task.cancelled():
                task.exception()  # looked at, so that nobody is told that nobody looked
