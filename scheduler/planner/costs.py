"""What a move costs: measured where it was measured, by bytes and bandwidth until then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduler.planner.needs import held_devices
from scheduler.planner.policy import Policy
from scheduler.planner.snapshot import Job, JobId, MoveCost, NodeId, Remedy

PAUSE_S = 2.0
"""Seconds to freeze and thaw in place."""
START_S = 5.0
"""Seconds to start a job anew."""


def default_cost(bytes_: int, policy: Policy) -> MoveCost:
    """The cost of moving an image of ``bytes_`` until one was measured."""
    half = policy.move_s / 2
    return MoveCost(checkpoint_s=half, transfer_s=bytes_ / policy.bandwidth, restore_s=half)


def move_s(job: Job, policy: Policy) -> float:
    """Seconds during which a move of this job keeps its devices from working."""
    if job.remedy is Remedy.PAUSE:
        return PAUSE_S
    if job.remedy is Remedy.REQUEUE:
        return START_S
    if job.cost is not None:
        return job.cost.total_s
    return policy.move_s + job.bytes / policy.bandwidth


def loss(job: Job, policy: Policy) -> float:
    """Device-seconds lost if it is pushed off now: work at stake, and the time to come back."""
    return (job.at_stake_s + move_s(job, policy)) * max(1, held_devices(job))


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Move costs learned from what happened, per job and per pair of nodes.

    An answer blends the running mean of the job itself, of the pair of nodes and the default,
    each weighing as much as it has samples; the default weighs as one.
    """

    policy: Policy = field(default_factory=Policy)
    by_job: Mapping[JobId, MoveCost] = field(default_factory=dict)
    by_pair: Mapping[tuple[NodeId, NodeId], float] = field(default_factory=dict)
    """Bandwidth seen between two nodes, bytes/s."""

    def learned(
        self, job: JobId, source: NodeId, target: NodeId, bytes_: int, seen: MoveCost
    ) -> Costs:
        """These costs and one more move that took ``seen`` for ``bytes_`` bytes."""
        old = self.by_job.get(job)
        by_job = {**self.by_job, job: seen if old is None else _mean(old, seen)}
        by_pair = dict(self.by_pair)
        if seen.transfer_s > 0 and bytes_ > 0:
            rate = bytes_ / seen.transfer_s
            by_pair[source, target] = (by_pair.get((source, target), rate) + rate) / 2
        return replace(self, by_job=by_job, by_pair=by_pair)

    def estimate(
        self,
        job: JobId,
        bytes_: int,
        source: NodeId | None = None,
        target: NodeId | None = None,
    ) -> MoveCost:
        """Seconds that the next move of this job will take."""
        cost = default_cost(bytes_, self.policy)
        if source is not None and target is not None and (source, target) in self.by_pair:
            cost = replace(cost, transfer_s=bytes_ / self.by_pair[source, target])
        known = self.by_job.get(job)
        return cost if known is None else _mean(known, replace(cost, samples=1))


def _mean(old: MoveCost, new: MoveCost, most: int = 8) -> MoveCost:
    """The mean weighted by samples; an old mean never weighs more than ``most`` samples."""
    before, after = max(1, min(old.samples, most)), max(1, new.samples)
    total = before + after
    return MoveCost(
        checkpoint_s=(old.checkpoint_s * before + new.checkpoint_s * after) / total,
        transfer_s=(old.transfer_s * before + new.transfer_s * after) / total,
        restore_s=(old.restore_s * before + new.restore_s * after) / total,
        samples=max(1, old.samples) + after,
    )
