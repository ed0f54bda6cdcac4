"""The real fleet as the cycle sees it."""

from __future__ import annotations

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
        with transaction.atomic():
            if connection.vendor == "postgresql":
                # One moment for all tables; SQLite's transactions see one anyway.
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return observe(self.now)

    def enact(self, plan: Plan) -> None:
        enact(plan, self.now)


def live_policy() -> Policy:
    """The policy that admins chose, else the environment's."""
    row = Settings.objects.filter(pk=1).first()
    name = (row and row.policy) or settings.POLICY
    preset = PRESETS.get(name, PRESETS["default"])
    return replace(preset, **row.changes) if row and row.changes else preset
