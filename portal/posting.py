"""Sends to channel groups from ordinary threads, over one connection a process."""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import cache
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer, get_channel_layer

log = logging.getLogger(__name__)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    # A loop of our own: async_to_sync would open a new connection to the broker for every message.
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="posting", daemon=True).start()
    return loop


async def _send(group: str, message: dict[str, Any]) -> None:
    try:
        layer = get_channel_layer()
        assert layer is not None
        await layer.group_send(group, message)
    except Exception:
        # What is lost here is seen again: pages reload their state, agents notice a newer number.
        log.warning("could not send to %s", group, exc_info=True)


def post(group: str, message: dict[str, Any]) -> None:
    """Send a message to a group, without waiting for it to arrive."""
    if isinstance(get_channel_layer(), InMemoryChannelLayer):
        async_to_sync(_send)(group, message)
    else:
        asyncio.run_coroutine_threadsafe(_send(group, message), _loop())
