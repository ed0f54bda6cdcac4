"""One turn of a planner: for the whole, reconcile if it is time, then a cycle; for a cluster, place
what was sent there."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import redis

from portal.actions.promising import turn_in
from portal.broker import broker
from portal.events import WANTED, wake, wake_in
from scheduler.cycle import run_cycle
from scheduler.live.cluster import LiveCluster, live_policy
from scheduler.live.lease import Turn, TurnLostError, turn
from scheduler.live.neighbourhoods import ClusterWatch
from scheduler.live.observing import Watch
from scheduler.live.reconciling import reconcile
from scheduler.live.sharing import Neighbourhood, SharedFleet
from scheduler.planner import Memory, Place, Policy
from scheduler.planner.hierarchy import Atlas, placing

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

WATCH, MEMORY, ATLAS = Watch(), Memory(), Atlas()
NEIGHBOURHOODS: dict[str, tuple[ClusterWatch, Memory]] = {}
"""What this process knows of the fleet and of its clusters from its last turns; all of them find
out what others did since."""


def take_turn(*, reconciling: bool) -> None:
    """Run a cycle if nobody else does; else have one run after it."""
    _pace.wait()
    try:
        with _turn("cycle", WANTED, ANOTHER, wake) as figures:
            if figures is not None:
                policy = live_policy()
                if reconciling:
                    reconcile(policy=policy)
                fleet = LiveCluster(watch=WATCH)
                if policy.by_cluster:
                    fleet = SharedFleet(ATLAS, watch=WATCH)
                fleet.policy = policy
                _run(fleet, policy, MEMORY, figures)
    finally:
        _pace.rest()


def take_turn_in(cluster: str) -> None:
    """Place what was sent to a cluster, if nobody else does; else have it done after that."""

    def again() -> None:
        wake_in(cluster)

    with _turn(turn_in(cluster), f"{WANTED}:{cluster}", f"{ANOTHER}:{cluster}", again) as figures:
        policy = live_policy()
        if figures is not None and policy.by_cluster:
            watch, memory = NEIGHBOURHOODS.setdefault(cluster, (ClusterWatch(cluster), Memory()))
            _run(Neighbourhood(watch), placing(policy), memory, figures)


def _run(fleet: LiveCluster, policy: Policy, memory: Memory, figures: Turn) -> None:
    began = time.perf_counter()
    fleet.keep = figures.keep
    plan = run_cycle(fleet, policy, memory)
    figures["cycle_s"] = round(time.perf_counter() - began, 4)
    figures["decisions"] = len(plan)
    figures["places"] = sum(isinstance(decision, Place) for decision in plan)


@contextmanager
def _turn(name: str, wanted: str, another: str, again: Callable[[], None]) -> Iterator[Turn | None]:
    """Take a turn, or have whoever has it take another one when it is done."""
    try:
        with turn(name) as figures:
            if figures is None:
                _ask_for_another(another)
            else:
                _calm(wanted)
            yield figures
    except TurnLostError as lost:
        log.warning("%s What it had not done yet is planned anew.", lost)
        return
    if figures is not None and _was_asked(another):
        again()


def _ask_for_another(mark: str) -> None:
    """Whoever has the turn runs once more when it is done; if it died, the next tick does."""
    with suppress(redis.RedisError, OSError):
        broker().set(mark, "1", ex=10)


def _was_asked(mark: str) -> bool:
    try:
        return bool(broker().getdel(mark))
    except (redis.RedisError, OSError):
        return False


def _calm(mark: str) -> None:
    """Whoever wants a cycle from now on wants another one."""
    try:
        broker().delete(mark)
    except (redis.RedisError, OSError):
        log.warning("the broker is away")
