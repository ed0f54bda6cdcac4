"""One turn of the planner: reconcile if it is time, then a cycle."""

from __future__ import annotations

import logging
import time

import redis

from portal.broker import broker
from portal.events import WANTED, wake
from scheduler.cycle import run_cycle
from scheduler.live.cluster import LiveCluster, live_policy
from scheduler.live.lease import turn
from scheduler.live.reconciling import reconcile

log = logging.getLogger(__name__)


def take_turn(*, reconciling: bool) -> None:
    """Run a cycle if nobody else does; else have one run after it."""
    with turn("cycle") as figures:
        if figures is None:
            wake()
            return
        _calm()
        if reconciling:
            reconcile()
        began = time.perf_counter()
        plan = run_cycle(LiveCluster(), live_policy())
        figures["cycle_s"] = round(time.perf_counter() - began, 4)
        figures["decisions"] = len(plan)


def _calm() -> None:
    """Whoever wants a cycle from now on wants another one."""
    try:
        broker().delete(WANTED)
    except (redis.RedisError, OSError):
        log.warning("the broker is away")
