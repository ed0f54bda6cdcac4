"""A fleet of many clusters: planners that share it by cluster, and one pass over the whole.

1. The pass over the whole plans for everybody who waits, in the order of the whole fleet and within
   every limit. What it remembers makes that cost what changed, not what there is.
2. Whom it gives all devices in a single cluster, without asking anybody to leave, it sends there
   (`Atlas.homes`). All else it does itself: who moves, shrinks or leaves for whom, gangs that
   span clusters, and the answers of those who wait on.
3. Each cluster's planner places those sent to it on its own nodes (`share`, `placing`). It reads
   nothing of the rest of the fleet, and these plans may be made by different processes at once.

Whoever was sent is planned for by the pass over the whole until it is placed: so its devices and
its part of a quota are not given away. Each planner keeps its own memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scheduler.planner.decisions import Decision, Hold, Migrate, Place, Plan, Preempt, Resize, Why
from scheduler.planner.ledger import NEVER
from scheduler.planner.memory import Memory
from scheduler.planner.passes import plan
from scheduler.planner.policy import Backfill, Policy
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import DeviceId, Job, JobId, Node, NodeId, Phase, Snapshot

Spot = tuple[NodeId, DeviceId]


class Atlas:
    """Which cluster each node is in; worked out anew only when nodes changed."""

    def __init__(self) -> None:
        self._nodes: tuple[Node, ...] = ()
        self._cluster: dict[NodeId, str] = {}
        self._names: frozenset[str] = frozenset()
        self._kinds: dict[str, set[str]] = {}

    def homes(self, snapshot: Snapshot, decided: Plan) -> dict[JobId, str]:
        """The clusters whose planners can give these jobs their devices as well.

        That is so where a job gets all it asked for, free, in one cluster with a name, and it
        cannot be of another kind than its quota was asked for.
        """
        self._take_in(snapshot.nodes)
        arrivals = [decision for decision in decided if isinstance(decision, Place)]
        if len(self._names) < 2 or not arrivals:
            return {}
        left = _left(snapshot, decided)
        wanted = {arrival.job for arrival in arrivals}
        jobs = {job.id: job for job in snapshot.jobs if job.id in wanted}
        found: dict[JobId, str] = {}
        for arrival in arrivals:
            cluster = self._home(jobs[arrival.job], arrival, left)
            if cluster:
                found[arrival.job] = cluster
        return found

    def cluster(self, node: NodeId) -> str:
        """The cluster of a node as it was last looked at; empty if it has none."""
        return self._cluster.get(node, "")

    def _take_in(self, nodes: tuple[Node, ...]) -> None:
        if nodes is self._nodes:
            return
        self._nodes, self._kinds = nodes, {}
        self._cluster = {node.id: node.cluster for node in nodes}
        self._names = frozenset(self._cluster.values()) - {""}

    def _kinds_in(self, cluster: str) -> set[str]:
        if cluster not in self._kinds:
            self._kinds[cluster] = {
                device.kind
                for node in self._nodes
                if node.cluster == cluster
                for device in node.devices
            }
        return self._kinds[cluster]

    def _home(self, job: Job, arrival: Place, left: frozenset[Spot]) -> str:
        clusters = {self.cluster(seat.node) for seat in arrival.seats}
        devices = {(seat.node, device) for seat in arrival.seats for device in seat.devices}
        cluster = min(clusters, default="")
        if len(clusters) > 1 or not cluster or job.kept_on or len(devices) < job.devices:
            return ""
        if not job.device_kind and len(self._kinds_in(cluster)) > 1:
            return ""
        return cluster if left.isdisjoint(devices) else ""


def _left(snapshot: Snapshot, decided: Plan) -> frozenset[Spot]:
    """The devices of those who leave or move in a plan: they are not free yet."""
    leaving = {one.job for one in decided if isinstance(one, Preempt | Migrate | Resize)}
    if not leaving:
        return frozenset()
    return frozenset(
        (seat.node, device)
        for job in snapshot.jobs
        if job.id in leaving
        for seat in job.seats
        for device in seat.devices
    )


def placing(policy: Policy) -> Policy:
    """The policy of a planner that only places those sent to it.

    Their order and their tenants' limits were looked at before they were sent.
    """
    return replace(
        policy, name=f"{policy.name} in a cluster", preemption=False, migration=False,
        elasticity=False, defragmentation=False, drains=False, quotas=False, explain=False,
        backfill=Backfill.SKIP, patience_s=NEVER,
    )  # fmt: skip


def share(snapshot: Snapshot, at: Mapping[JobId, str], cluster: str) -> Snapshot:
    """What the planner of one cluster is shown: its nodes, who is there, who was sent there."""
    nodes = tuple(node for node in snapshot.nodes if node.cluster == cluster)
    inside = {node.id for node in nodes}
    jobs = tuple(
        job
        for job in snapshot.jobs
        if (
            at.get(job.id) == cluster
            if job.phase is Phase.WAITING
            else any(seat.node in inside for seat in job.seats)
        )
    )
    return replace(snapshot, nodes=nodes, jobs=jobs, links=(), moved_at=())


class Planners:
    """The memories of the planners of one fleet: one for the whole, and one a cluster."""

    def __init__(self) -> None:
        self.atlas = Atlas()
        self.whole = Memory()
        self.of: dict[str, Memory] = {}

    def cluster(self, name: str) -> Memory:
        return self.of.setdefault(name, Memory())


def plan_by_cluster(snapshot: Snapshot, policy: Policy, planners: Planners | None = None) -> Plan:
    """One round of all planners of a fleet, one after the other, as a single plan.

    Whom a cluster's planner finds no place for waits for the next round.
    """
    planners = planners or Planners()
    decided = plan(snapshot, policy, planners.whole)
    at = planners.atlas.homes(snapshot, decided)
    own = [decision for decision in decided if decision.job not in at]
    before = replace(snapshot, jobs=tuple(_coming(snapshot, own)))
    placed: dict[JobId, Decision] = {}
    for cluster in sorted(set(at.values())):
        part = share(before, at, cluster)
        for decision in plan(part, placing(policy), planners.cluster(cluster)):
            if isinstance(decision, Place):
                placed[decision.job] = decision
    held = [
        Hold(job=job, why=Why(reason=Reason.SENT, numbers={"cluster": cluster}))
        for job, cluster in at.items()
        if job not in placed
    ]
    return (*own, *placed.values(), *held)


def _coming(snapshot: Snapshot, own: list[Decision]) -> list[Job]:
    """The jobs as they are once a plan was begun: whoever moves holds both places."""
    seats = {one.job: one.seats for one in own if isinstance(one, Place | Migrate | Resize)}
    return [
        replace(job, phase=Phase.MOVING, seats=(*job.seats, *seats[job.id]))
        if job.id in seats
        else job
        for job in snapshot.jobs
    ]
