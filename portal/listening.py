"""Since when the portal can hear agents, so that its own deafness is never taken for theirs."""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from portal.actions.linking import LEASE_S, listen
from portal.models import Lease

log = logging.getLogger(__name__)

BEAT_S = 2.0
DEAF_AFTER = timedelta(seconds=min(10.0, LEASE_S / 2))
"""Well before the first node would be given up, which was last heard of a quarter lease earlier."""


def beat(now: datetime | None = None) -> None:
    """Say that this portal process listens. After a gap, all portals count as deaf until now."""
    now = now or timezone.now()
    lease, _ = Lease.objects.get_or_create(name="portal")
    if lease.beat_at is None or now - lease.beat_at > DEAF_AFTER:
        listen(now)
    Lease.objects.filter(name="portal").update(beat_at=now)


def deaf(now: datetime) -> bool:
    """Whether no portal process has listened lately."""
    beat_at = Lease.objects.filter(name="portal").values_list("beat_at", flat=True).first()
    return beat_at is None or now - beat_at > DEAF_AFTER


def _keep_beating(stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            close_old_connections()
            beat()
        except DatabaseError:
            log.warning("could not say that the portal listens", exc_info=True)
        stop.wait(BEAT_S)


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    """ASGI lifespan: beat from start-up to shut-down."""
    stop = threading.Event()
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            threading.Thread(
                target=_keep_beating, args=(stop,), name="listening", daemon=True
            ).start()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            stop.set()
            await send({"type": "lifespan.shutdown.complete"})
            return
