"""The one connection pool to the Redis protocol that rows' shadows and wake-ups go through."""

from __future__ import annotations

from functools import cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry


@cache
def broker() -> redis.Redis:
    """The broker's client; made at first use, so that a process forked later has its own."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=5,
        socket_connect_timeout=5,
        # The default waits for seconds between tries; a submission must not wait for a dead broker.
        retry=Retry(NoBackoff(), 1),
    )
