"""What a move costs: measured where it was measured, by bytes and bandwidth until then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log
from statistics import median

from scheduler.planner.fleet import Host
from scheduler.planner.needs import held_devices
from scheduler.planner.policy import Policy
from scheduler.planner.promises import at_stake
from scheduler.planner.snapshot import Job, Link, NodeId, Remedy

PAUSE_S = 2.0
"""Seconds to freeze and thaw in place."""
START_S = 5.0
"""Seconds to start a job anew."""
SURE = 8
"""More samples than this do not weigh more."""


class Roads:
    """How fast images travel between nodes, learned from moves between them.

    What was seen between two nodes is blended with the median of all pairs that lie as far from
    each other (one node, rack, cluster, region, or farther); until something like it was seen the
    policy's bandwidth stands in. Each weighs as much as it has samples, the last two as one.
    """

    def __init__(self, links: Sequence[Link], hosts: Mapping[NodeId, Host]) -> None:
        self._hosts = hosts
        self._seen = {(link.source, link.target): link for link in links}
        rates: dict[int, list[float]] = {}
        for link in links:
            rates.setdefault(self._distance(link.source, link.target), []).append(link.rate)
        self._usual = {distance: median(found) for distance, found in rates.items()}

    def __bool__(self) -> bool:
        return bool(self._seen)

    def rate(self, source: NodeId, target: NodeId, policy: Policy) -> float:
        """Bytes a second that one image is expected to travel from one node to another."""
        usual = self._usual.get(self._distance(source, target), policy.bandwidth)
        seen = self._seen.get((source, target))
        if seen is None:
            return usual
        weight = min(seen.samples, SURE)
        return exp((log(seen.rate) * weight + log(usual)) / (weight + 1))

    def transfer_s(self, job: Job, targets: Sequence[NodeId], policy: Policy) -> float:
        """Seconds until all of a job's images are there; those for one node share its way."""
        each = job.bytes / len(job.seats)
        arrival: dict[NodeId, float] = {}
        for index, seat in enumerate(job.seats):
            target = targets[index * len(targets) // len(job.seats)]
            rate = self.rate(seat.node, target, policy)
            arrival[target] = arrival.get(target, 0.0) + each / rate
        return max(arrival.values())

    def samples(self, job: Job, targets: Sequence[NodeId]) -> int:
        """How many moves between such nodes the estimate rests on."""
        sources = {seat.node for seat in job.seats}
        found = [self._seen.get((s, t)) for s in sources for t in dict.fromkeys(targets)]
        return min(SURE, sum(link.samples for link in found if link is not None))

    def _distance(self, source: NodeId, target: NodeId) -> int:
        if source == target:
            return 0
        left, right = self._hosts.get(source), self._hosts.get(target)
        if left is None or right is None:
            return 4
        one, other = left.node, right.node
        if one.region != other.region:
            return 4
        if one.cluster != other.cluster:
            return 3
        return 1 if one.rack == other.rack else 2


NO_ROADS = Roads((), {})


def move_s(
    job: Job, policy: Policy, roads: Roads = NO_ROADS, targets: Iterable[NodeId] = ()
) -> float:
    """Seconds during which a move of this job keeps its devices from working.

    ``targets``: where its replicas would go, by rank; without them wherever that may be.
    """
    if job.remedy is Remedy.PAUSE:
        return PAUSE_S
    if job.remedy is Remedy.REQUEUE:
        return START_S
    known, ends = job.cost, tuple(targets)
    fixed = policy.move_s if known is None else known.checkpoint_s + known.restore_s
    usual = job.bytes / policy.bandwidth if known is None else known.transfer_s
    if not (roads and ends and job.bytes and job.seats):
        return fixed + usual
    expected = roads.transfer_s(job, ends, policy)
    if known is None:
        return fixed + expected
    # What this job took so far, wherever it went, and what others took between these nodes.
    own, theirs = max(1, min(known.samples, SURE)), max(1, roads.samples(job, ends))
    return fixed + (usual * own + expected * theirs) / (own + theirs)


def loss(job: Job, policy: Policy, now: float) -> float:
    """Device-seconds lost if it is pushed off now: work at stake, and the time to come back."""
    return (at_stake(job, now) + move_s(job, policy)) * max(1, held_devices(job))
