"""A fleet of many clusters: planners that share it by cluster, and one pass over the whole.

1. `homes` sends each waiting job to the cluster with the most room for it, by counting only, within
   what its tenant may use. Jobs that no cluster holds alone stay with the fleet.
2. Each cluster's planner places those sent to it on its own nodes (`share`). These plans know
   nothing of each other and may be made by different processes.
3. The pass over the whole fleet answers all others: who moves, shrinks or leaves for whom.

Only the last pass disturbs running jobs, so nobody is pushed off in one cluster while another has
room. Each planner keeps its own memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from scheduler.planner.decisions import Place, Plan
from scheduler.planner.fairness import Accounts
from scheduler.planner.memory import Memory
from scheduler.planner.needs import held_devices, natural
from scheduler.planner.passes import plan
from scheduler.planner.policy import Policy
from scheduler.planner.snapshot import (
    Job,
    JobId,
    Node,
    NodeId,
    Phase,
    Quota,
    Snapshot,
    Tenant,
    TenantId,
)

FLEET = ""
"""The home of jobs that need more than one cluster."""


class Planners:
    """The memories of the planners of one fleet: one for the whole, and one a cluster."""

    def __init__(self) -> None:
        self.whole = Memory()
        self.of: dict[str, Memory] = {}

    def cluster(self, name: str) -> Memory:
        return self.of.setdefault(name, Memory())


def plan_by_cluster(snapshot: Snapshot, policy: Policy, planners: Planners | None = None) -> Plan:
    """A plan for the whole fleet, made cluster by cluster."""
    planners = planners or Planners()
    at = homes(snapshot, policy)
    gentle = placing(policy)
    placed: dict[JobId, Place] = {}
    for cluster in sorted({node.cluster for node in snapshot.nodes}):
        part = share(snapshot, at, cluster)
        for decision in plan(part, gentle, planners.cluster(cluster)):
            if isinstance(decision, Place):
                placed[decision.job] = decision
    rest = replace(
        snapshot,
        jobs=tuple(
            replace(job, phase=Phase.MOVING, seats=placed[job.id].seats)
            if job.id in placed
            else job
            for job in snapshot.jobs
        ),
    )
    return (*placed.values(), *plan(rest, policy, planners.whole))


def placing(policy: Policy) -> Policy:
    """The policy of a planner that only places."""
    return replace(
        policy, name=f"{policy.name} in a cluster", preemption=False, migration=False,
        elasticity=False, defragmentation=False, drains=False, explain=False,
    )  # fmt: skip


def homes(snapshot: Snapshot, policy: Policy) -> dict[JobId, str]:
    """The cluster of every waiting job whose tenant may use so many devices more."""
    free = _free(snapshot)
    accounts = Accounts(snapshot.tenants)
    nodes = {node.id: node for node in snapshot.nodes}
    for job in snapshot.jobs:
        account = accounts.get(job.tenant)
        if job.phase is not Phase.WAITING and account is not None:
            account.charge(_kind(job, nodes), held_devices(job))
    ranks = {tier.id: tier.rank for tier in snapshot.tiers} if policy.tiers else {}
    waiting = sorted(
        (job for job in snapshot.jobs if job.phase is Phase.WAITING and not job.kept_on),
        key=lambda job: (
            -ranks.get(job.tier, 0), -job.priority, job.submitted_at, natural(job.id),
        ),
    )  # fmt: skip
    found: dict[JobId, str] = {}
    for job in waiting:
        rooms = [
            (count, cluster, kind)
            for (cluster, kind), count in free.items()
            if count >= job.devices and job.device_kind in ("", kind)
        ]
        if not rooms:
            found[job.id] = FLEET
            continue
        _, cluster, kind = max(rooms)
        account = accounts.get(job.tenant)
        if account is not None:
            if policy.quotas and accounts.refusal(account, kind, job.devices, None) is not None:
                continue
            account.charge(kind, job.devices)
        free[cluster, kind] -= job.devices
        found[job.id] = cluster
    return found


def _free(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """Healthy devices of usable nodes that nobody holds, by cluster and kind."""
    taken = {
        (seat.node, device)
        for job in snapshot.jobs
        for seat in job.seats
        for device in seat.devices
    }
    free: dict[tuple[str, str], int] = {}
    for node in snapshot.nodes:
        if node.cordoned or node.draining or node.lost:
            continue
        for device in node.devices:
            if not device.sick and (node.id, device.id) not in taken:
                key = (node.cluster, device.kind)
                free[key] = free.get(key, 0) + 1
    return free


def _kind(job: Job, nodes: Mapping[NodeId, Node]) -> str:
    """The device kind that a running job holds."""
    if job.device_kind or not job.seats:
        return job.device_kind
    seat = job.seats[0]
    devices = nodes[seat.node].devices if seat.node in nodes else ()
    return next((one.kind for one in devices if one.id in seat.devices), "")


def share(snapshot: Snapshot, at: Mapping[JobId, str], cluster: str) -> Snapshot:
    """What the planner of one cluster is shown: its nodes, who runs there, who was sent there.

    A tenant may use there what it uses there already and what was sent: so all planners together
    keep to its limit. What others keep to themselves is kept in every cluster.
    """
    nodes = tuple(node for node in snapshot.nodes if node.cluster == cluster)
    inside = {node.id for node in nodes}
    kinds = {device.id: device.kind for node in nodes for device in node.devices}
    jobs: list[Job] = []
    used: dict[tuple[TenantId, str], int] = {}
    for job in snapshot.jobs:
        if job.phase is Phase.WAITING:
            if at.get(job.id) == cluster:
                jobs.append(job)
                for kind in [job.device_kind] if job.device_kind else sorted(set(kinds.values())):
                    key = (job.tenant, kind)
                    used[key] = used.get(key, 0) + job.devices
        elif any(seat.node in inside for seat in job.seats):
            jobs.append(job)
            for kind in sorted({kinds.get(d, "") for seat in job.seats for d in seat.devices}):
                key = (job.tenant, kind)
                used[key] = used.get(key, 0) + held_devices(job)
    return replace(snapshot, nodes=nodes, jobs=tuple(jobs), tenants=_sliced(snapshot.tenants, used))


def _sliced(
    tenants: Iterable[Tenant], used: Mapping[tuple[TenantId, str], int]
) -> tuple[Tenant, ...]:
    """The tenants with limits of what they use and were sent, parents with that of all below."""
    tenants = tuple(tenants)
    parents = {tenant.id: tenant.parent for tenant in tenants}
    whole: dict[tuple[TenantId, str], int] = {}
    for (tenant, kind), count in used.items():
        above: TenantId | None = tenant
        seen: set[TenantId] = set()
        while above is not None and above not in seen:
            seen.add(above)
            whole[above, kind] = whole.get((above, kind), 0) + count
            above = parents.get(above)

    def sliced(tenant: Tenant, kind: str, quota: Quota) -> Quota:
        limit = whole.get((tenant.id, kind), 0)
        if not quota.lend:
            return quota
        reserved = min(quota.reserved, limit)
        return replace(quota, reserved=reserved, borrow=limit - reserved)

    return tuple(
        replace(
            tenant,
            quotas={kind: sliced(tenant, kind, quota) for kind, quota in tenant.quotas.items()},
        )
        for tenant in tenants
    )
