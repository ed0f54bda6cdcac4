"""One cluster of the fleet, looked at again and again by the planner that places jobs there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from portal.choices import JobState, PlacementState
from portal.models import Job, Node, PlacedReplica
from scheduler import planner
from scheduler.live import machines, reading
from scheduler.live.observing import Watch


class ClusterWatch(Watch):
    """A cluster's nodes, who is seated there and who was sent there; nothing else is read.

    What only planners look at that disturb running jobs is left out: ways, gains, and which part
    of a promise is too old to count.
    """

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        super().__init__()

    def _jobs(self, keys: reading.Keys, now: datetime) -> Iterable[tuple[int, planner.Job | None]]:
        sent = self._sent(keys)
        here = sent | self._seated(keys)
        for id in set(keys or ()) - here:
            yield id, None
        for id, job in super()._jobs(here, now):
            waits = job is not None and job.phase is planner.Phase.WAITING
            yield id, (None if waits and id not in sent else job)

    def _sent(self, keys: reading.Keys) -> set[int]:
        rows = Job.objects.filter(home=self.cluster, state=JobState.WAITING).order_by()
        if keys is not None:
            rows = rows.filter(id__in=keys)
        return set(rows.values_list("id", flat=True))

    def _seated(self, keys: reading.Keys) -> set[int]:
        rows = PlacedReplica.objects.filter(node__cluster=self.cluster).order_by()
        rows = rows.exclude(placement__state=PlacementState.ENDED)
        if keys is not None:
            rows = rows.filter(placement__job__in=keys)
        return set(rows.values_list("placement__job_id", flat=True))

    def _machines(self, keys: reading.Keys) -> dict[int, planner.Node]:
        rows = Node.objects.filter(cluster=self.cluster).order_by()
        if keys is not None:
            rows = rows.filter(id__in=keys)
        return machines.nodes(set(rows.values_list("id", flat=True)))

    def _concerned(self, nodes: Collection[int]) -> set[int]:
        return reading.seated_on(nodes)

    def _learned(self, recipes: Collection[str] | None) -> reading.Gains:
        return {}

    def _past(self, window: datetime, keys: reading.Keys) -> dict[int, tuple[float, float]]:
        return {}

    def _ways(self) -> tuple[planner.Link, ...]:
        return ()
