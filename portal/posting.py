"""Sends to channel groups from ordinary threads, many at once, over one connection a process."""

from __future__ import annotations

import atexit
import logging
import threading
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.conf import settings

from portal.broker import reach

log = logging.getLogger(__name__)

Post = tuple[str, dict[str, Any]]

LAST_WORDS_S = 2.0
"""How long a process that ends waits for what it said last to be sent."""


def post(group: str, message: dict[str, Any]) -> None:
    """Send a message to a group, without waiting for it to arrive."""
    layer = get_channel_layer()
    if isinstance(layer, InMemoryChannelLayer):
        async_to_sync(layer.group_send)(group, message)
    else:
        _waiting().put((group, message))


@cache
def _waiting() -> SimpleQueue[Post | None]:
    waiting: SimpleQueue[Post | None] = SimpleQueue()
    thread = threading.Thread(target=_keep_sending, args=(waiting,), name="posting", daemon=True)
    thread.start()

    def finish() -> None:
        waiting.put(None)
        thread.join(LAST_WORDS_S)

    atexit.register(finish)
    return waiting


def _keep_sending(waiting: SimpleQueue[Post | None]) -> None:
    """Send what has come together since the last time, in one trip to the broker, until None."""
    going_on = True
    while going_on:
        came = [waiting.get()]
        try:
            while True:
                came.append(waiting.get_nowait())
        except Empty:
            pass
        posts = [post for post in came if post is not None]
        going_on = len(posts) == len(came)
        try:
            send_all(posts)
        except Exception:
            # What is lost is seen again: pages reload their state, agents notice a newer number.
            log.warning("could not send %d messages", len(posts), exc_info=True)


def send_all(posts: list[Post]) -> None:
    """Send messages in order; of several that say the same to the same group only the last."""
    if not posts:
        return
    layer: Any = get_channel_layer()
    # The name that the layer's own group_send gives to a group: it does one trip for each.
    group_name = settings.CHANNEL_LAYERS["default"]["CONFIG"]["prefix"] + "__group__{}"
    news: dict[tuple[str, bytes], None] = {}
    for group, message in posts:
        said = group, layer.serialize(message)
        news.pop(said, None)
        news[said] = None
    with reach() as broker:
        pipeline = broker.pipeline(transaction=False)
        for group, packed in news:
            pipeline.publish(group_name.format(group), packed)
        pipeline.execute()
