"""Observe, plan, enact: the one cycle that the live fleet and the simulator both run."""

from __future__ import annotations

from typing import Protocol

from scheduler.planner import Memory, Plan, Policy, Snapshot, plan


class Cluster(Protocol):
    """A fleet that can be looked at and acted upon."""

    def observe(self) -> Snapshot: ...

    def enact(self, plan: Plan) -> None: ...


def run_cycle(cluster: Cluster, policy: Policy, memory: Memory | None = None) -> Plan:
    """Run one cycle and answer what was decided.

    ``memory`` is handed in again by whoever runs many cycles; it saves time and changes nothing.
    """
    decided = plan(cluster.observe(), policy, memory)
    cluster.enact(decided)
    return decided
