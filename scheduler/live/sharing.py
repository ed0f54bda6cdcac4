"""Several planners at once: one for the whole fleet, which sends jobs, and one for each cluster.

`scheduler/planner/hierarchy.py` says who plans what. Here the planners are turns of any process,
and what one of them decided reaches the others by rows:

* A job has a home while it is sent. Only the pass over the whole sends it and calls it back, and
  only while it has its home does the planner there place it. So at any moment all who run and all
  who were sent keep to every limit together.
* Before the pass over the whole gives to others what it had meant for a job, it calls that job
  back. If one was placed in the same moment, nothing of the plan is done, and a new one is made.
* Of two planners that promise the same device, only the first does (`portal/actions/promising.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Set
from contextlib import AbstractContextManager
from datetime import datetime

from portal.actions.homes import FLEET, call_back, give_back, homes, send
from portal.actions.promising import sole_promiser
from portal.events import wake, wake_in
from portal.models import Job
from scheduler import planner
from scheduler.live.cluster import LiveCluster
from scheduler.live.enacting import Ground, Promises, enact
from scheduler.live.naming import job_id, job_row
from scheduler.live.neighbourhoods import ClusterWatch
from scheduler.live.observing import Watch
from scheduler.planner.hierarchy import Atlas

FEW = 8
"""So many in a cluster are placed by the pass over the whole: a turn there would take longer."""


class Commons(Ground):
    """Devices that others may promise as well: all of the fleet, or those of one cluster."""

    def __init__(self, keep: Callable[[], None], cluster: str | None = None) -> None:
        super().__init__(keep)
        self.cluster = cluster

    def sole(self, nodes: Iterable[int]) -> AbstractContextManager[Promises]:
        return sole_promiser(nodes, self.cluster)

    def mine(self, job: Job) -> bool:
        return job.home == self.cluster if self.cluster is not None else not job.home


class SharedFleet(LiveCluster):
    """The fleet as the pass over the whole sees it, with planners of clusters at work beside it."""

    def __init__(
        self, atlas: Atlas, now: datetime | None = None, watch: Watch | None = None
    ) -> None:
        super().__init__(now, watch)
        self.atlas = atlas
        self.sent: dict[planner.JobId, str] = {}

    def observe(self) -> planner.Snapshot:
        # Before the rows: who is placed meanwhile is then seen as placed.
        self.sent = {job_id(id): cluster for id, cluster in homes().items()}
        return super().observe()

    def enact(self, plan: planner.Plan) -> None:
        assert self._seen is not None
        able = self.atlas.homes(self._seen, plan)
        placed = {one.job for one in plan if isinstance(one, planner.Place)}
        stay = {id: at for id, at in self.sent.items() if id in (able if at else placed)}
        back = self.sent.keys() - stay.keys() - self._settled()
        if back and not call_back([job_row(id) for id in back]):
            wake()
            return
        away = {id: at for id, at in stay.items() if at != FLEET}
        fresh = {id: at for id, at in able.items() if id not in stay}
        many = Counter([*away.values(), *fresh.values()])
        fresh = {id: at for id, at in fresh.items() if many[at] > FEW}
        away |= fresh
        own = [one for one in plan if one.job not in away]
        # What the planners of clusters should see comes first, the rest while they are at work.
        near = [one for one in own if self._concerns(one, set(away.values()))]
        enact(tuple(near), self.now, Commons(self.keep))
        for cluster in sorted(set(fresh.values())):
            why = planner.Reason.SENT
            jobs = [job_row(id) for id, at in fresh.items() if at == cluster]
            send(jobs, cluster, why.value, why.sentence({"cluster": cluster}))
        for cluster in sorted(set(away.values())):
            wake_in(cluster)
        done = {one.job for one in near}
        enact(tuple(one for one in own if one.job not in done), self.now, Commons(self.keep))
        self._allot()

    def _concerns(self, decision: planner.Decision, clusters: Set[str]) -> bool:
        """Whether somebody leaves, or is given devices in one of some clusters."""
        if isinstance(decision, planner.Hold):
            return False
        seats = () if isinstance(decision, planner.Preempt) else decision.seats
        return not seats or any(self.atlas.cluster(seat.node) in clusters for seat in seats)

    def _settled(self) -> set[planner.JobId]:
        """Those that were sent and have been placed."""
        waiting = planner.Phase.WAITING
        assert self._seen is not None
        return {
            job.id for job in self._seen.jobs if job.id in self.sent and job.phase is not waiting
        }


class Neighbourhood(LiveCluster):
    """One cluster as its planner sees it, which places there what was sent."""

    watch: ClusterWatch

    def __init__(self, watch: ClusterWatch, now: datetime | None = None) -> None:
        super().__init__(now, watch)

    def enact(self, plan: planner.Plan) -> None:
        assert self._seen is not None
        cluster = self.watch.cluster
        sent = [job_row(job.id) for job in self._seen.jobs if job.phase is planner.Phase.WAITING]
        try:
            places = [decision for decision in plan if isinstance(decision, planner.Place)]
            enact(tuple(places), self.now, Commons(self.keep, cluster))
        finally:
            if sent and give_back(sent, cluster):
                wake()
