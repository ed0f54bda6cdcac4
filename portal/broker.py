"""The one connection pool to the Redis protocol that rows' shadows and wake-ups go through."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT_S = 5.0
AGAIN_S = 5.0
"""How long a broker that did not answer in time is left alone."""


class Silence:
    """Until when the broker is not asked, on the monotonic clock."""

    until = 0.0


@cache
def broker() -> redis.Redis:
    """The broker's client; made at first use, so that a process forked later has its own."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        # The default waits for seconds between tries; a submission must not wait for a dead broker.
        # Once more at once only where a connection has broken, as after a restart.
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    )


@contextmanager
def reach() -> Iterator[redis.Redis]:
    """Use the broker for what can do without it. Raises ``redis.RedisError`` or ``OSError``.

    One that hangs costs its caller the whole timeout, and soon all threads of a process would wait
    for it: so after one has found out, the others are told at once.
    """
    if time.monotonic() < Silence.until:
        raise redis.ConnectionError("It did not answer a moment ago.")
    try:
        yield broker()
    except redis.TimeoutError:
        Silence.until = time.monotonic() + AGAIN_S
        raise
