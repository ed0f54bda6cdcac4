"""What the broker tells of one node: that something else is wanted, or that its agent came anew."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from channels.layers import get_channel_layer
from redis import RedisError

log = logging.getLogger(__name__)

AGAIN_S = 2.0
"""Seconds after which a broker that was away is asked again."""
LOST = (RedisError, OSError, TimeoutError)


class Hints:
    """Listens for one connection of a node's agent, and outlives the broker."""

    def __init__(
        self,
        node: int,
        *,
        fresh: Callable[[], None],
        superseded: Callable[[], Awaitable[None]],
    ) -> None:
        self.group = f"node.{node}"
        self.fresh = fresh
        self.superseded = superseded

    async def listen(self) -> None:
        """Hand on what is told, until cancelled."""
        greet = True
        while True:
            try:
                await self._listen(greet=greet)
            except LOST as error:
                log.warning("no hints for %s, the broker is away: %s", self.group, error)
            greet = False
            await asyncio.sleep(AGAIN_S)

    async def _listen(self, *, greet: bool) -> None:
        layer: Any = get_channel_layer()
        name = await layer.new_channel()
        try:
            if greet:  # a node has one agent: whoever was connected before gives way
                await layer.group_send(self.group, {"type": "superseded", "by": name})
            await layer.group_add(self.group, name)
            self.fresh()  # something may have been told before
            while True:
                told = await layer.receive(name)
                if told["type"] == "renew":
                    self.fresh()
                elif told["type"] == "superseded" and told["by"] != name:
                    await self.superseded()
        finally:
            with contextlib.suppress(*LOST):
                await layer.group_discard(self.group, name)
