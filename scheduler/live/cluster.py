"""The real fleet as the cycle sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from portal.models import Settings
from scheduler.live.enacting import enact
from scheduler.live.observing import observe
from scheduler.planner import PRESETS, Plan, Policy, Snapshot


class LiveCluster:
    """Observes rows and enacts through guarded updates; ``now`` is the moment of one cycle."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or timezone.now()

    def observe(self) -> Snapshot:
        with one_moment():
            return observe(self.now)

    def enact(self, plan: Plan) -> None:
        enact(plan, self.now)


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
    row = Settings.objects.filter(pk=1).first()
    name = (row and row.policy) or settings.POLICY
    preset = PRESETS.get(name, PRESETS["default"])
    return replace(preset, **row.changes) if row and row.changes else preset
