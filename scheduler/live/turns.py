"""One turn of the planner: reconcile if it is time, then a cycle."""

from __future__ import annotations

import logging
import time
from contextlib import suppress

import redis

from portal.broker import broker
from portal.events import WANTED, wake
from scheduler.cycle import run_cycle
from scheduler.live.cluster import LiveCluster, live_policy
from scheduler.live.lease import turn
from scheduler.live.observing import Watch
from scheduler.live.reconciling import reconcile
from scheduler.planner import Memory

log = logging.getLogger(__name__)

ANOTHER = "tidepool:another-cycle"
LONGEST_PAUSE_S = 0.1


class _Pace:
    """Cycles that are wanted one after the other take half of the time: each answers for all that
    came in the other half. Whoever comes alone does not wait."""

    began = ended = 0.0

    def wait(self) -> None:
        spent = min(LONGEST_PAUSE_S, self.ended - self.began)
        time.sleep(max(0.0, self.ended + spent - time.monotonic()))
        self.began = time.monotonic()

    def rest(self) -> None:
        self.ended = time.monotonic()


_pace = _Pace()

WATCH, MEMORY = Watch(), Memory()
"""What this process knows of the fleet from its last turn; both find out what others did since."""


def take_turn(*, reconciling: bool) -> None:
    """Run a cycle if nobody else does; else have one run after it."""
    _pace.wait()
    try:
        _take_turn(reconciling=reconciling)
    finally:
        _pace.rest()


def _take_turn(*, reconciling: bool) -> None:
    with turn("cycle") as figures:
        if figures is None:
            _ask_for_another()
            return
        _calm()
        if reconciling:
            reconcile()
        began = time.perf_counter()
        plan = run_cycle(LiveCluster(watch=WATCH), live_policy(), MEMORY)
        figures["cycle_s"] = round(time.perf_counter() - began, 4)
        figures["decisions"] = len(plan)
    if _was_asked():
        wake()


def _ask_for_another() -> None:
    """Whoever has the turn runs once more when it is done; if it died, the next tick does."""
    with suppress(redis.RedisError, OSError):
        broker().set(ANOTHER, "1", ex=10)


def _was_asked() -> bool:
    try:
        return bool(broker().getdel(ANOTHER))
    except (redis.RedisError, OSError):
        return False


def _calm() -> None:
    """Whoever wants a cycle from now on wants another one."""
    try:
        broker().delete(WANTED)
    except (redis.RedisError, OSError):
        log.warning("the broker is away")
