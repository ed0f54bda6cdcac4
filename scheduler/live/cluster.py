"""The real fleet as the cycle sees it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.utils import timezone

from portal.actions.planning import policy_in_force
from scheduler.live.allotting import allot_cpus
from scheduler.live.enacting import Ground, enact
from scheduler.live.observing import Watch
from scheduler.planner import Plan, Policy, Snapshot


class LiveCluster:
    """Observes rows and enacts through guarded updates; ``now`` is the moment of one cycle.

    Whoever runs many cycles hands in the same ``watch``: it saves time and changes nothing.
    ``keep`` is called before anything is written, and raises when the turn is another's.
    """

    keep: Callable[[], None] = staticmethod(lambda: None)
    policy: Policy | None = None
    """What it is run by, where that was just read."""

    def __init__(self, now: datetime | None = None, watch: Watch | None = None) -> None:
        self.now = now or timezone.now()
        self.watch = watch or Watch()
        self._seen: Snapshot | None = None

    def observe(self) -> Snapshot:
        self._seen = self.watch.observe(self.now)
        return self._seen

    def enact(self, plan: Plan) -> None:
        enact(plan, self.now, Ground(self.keep))
        self._allot()

    def _allot(self) -> None:
        if self._seen is not None:
            allot_cpus(self._seen, self.policy or live_policy())


def live_policy() -> Policy:
    """The policy that admins chose, else the environment's."""
    return policy_in_force()
