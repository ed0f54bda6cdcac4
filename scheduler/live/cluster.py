"""The real fleet as the cycle sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import connection, transaction
from django.utils import timezone

from portal.actions.planning import policy_in_force
from scheduler.live.allotting import allot_cpus
from scheduler.live.enacting import enact
from scheduler.live.observing import observe
from scheduler.planner import Plan, Policy, Snapshot


class LiveCluster:
    """Observes rows and enacts through guarded updates; ``now`` is the moment of one cycle."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or timezone.now()
        self._seen: Snapshot | None = None

    def observe(self) -> Snapshot:
        with one_moment():
            self._seen = observe(self.now)
        return self._seen

    def enact(self, plan: Plan) -> None:
        enact(plan, self.now)
        if self._seen is not None:
            allot_cpus(self._seen, live_policy())


@contextmanager
def one_moment() -> Iterator[None]:
    """See all tables as they are at one moment, without keeping others from writing."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql" and not connection.in_atomic_block:
            with transaction.atomic():
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield
        elif connection.vendor == "sqlite" and not connection.in_atomic_block:
            # Django's own transactions are immediate: they would hold the only pen.
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
        else:
            yield


def live_policy() -> Policy:
    """The policy that admins chose, else the environment's."""
    return policy_in_force()
