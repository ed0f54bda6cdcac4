"""What can be said no to at once: quotas, and requests that this fleet can never serve."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Sum

from portal.choices import PlacementState
from portal.drawings.figures import count
from portal.models import Node, Partition, Placement, Quota, Tenant
from portal.refusals import Refused

if TYPE_CHECKING:
    from portal.actions.submitting import JobRequest


@dataclass(frozen=True, slots=True)
class Limits:
    """How many devices a tenant may use of one kind; None: without limit."""

    tenant: Tenant
    most: int | None

    @property
    def left(self) -> int | None:
        """How many of them are not in use now."""
        if self.most is None:
            return None
        present = (PlacementState.ACTIVE, PlacementState.HELD)
        held = Placement.objects.filter(job__tenant=self.tenant, state__in=present)
        used = held.aggregate(used=Sum("devices", default=0))["used"]
        return max(0, self.most - int(used))

    @classmethod
    def of(cls, tenant: Tenant, kind: str) -> Limits:
        """The limits for a kind of device; an unnamed kind is limited by all kinds together."""
        quotas = list(Quota.objects.filter(tenant=tenant).order_by())
        general = [quota for quota in quotas if not quota.device_kind]
        special = [quota for quota in quotas if kind and quota.device_kind == kind]
        return cls(tenant, _most(special or general or quotas))


def _most(quotas: list[Quota]) -> int | None:
    if not quotas or any(quota.borrow is None for quota in quotas):
        return None
    return sum(quota.reserved + (quota.borrow or 0) for quota in quotas)


def check_quota(limits: Limits, devices: int) -> None:
    """Refuse what is more than the tenant may ever use at once."""
    if limits.most is not None and devices > limits.most:
        raise Refused(
            {
                "gpus_per_replica": f"It needs {count(devices, 'device')}, and"
                f" {limits.tenant.slug} may use {limits.most} at once. Ask for fewer,"
                " set a lower bound, or ask an admin for quota."
            },
            id="over-quota",
        )


def check_fleet(request: JobRequest, tenant: Tenant, partition: Partition | None) -> list[Node]:
    """The nodes that could ever hold a replica. Refuses a request that no present node can serve.

    Nodes that are away, cordoned or busy count: they come back, and waiting is not wrong.
    """
    nodes = list(Node.objects.exclude(heard_at=None).prefetch_related("devices"))
    if partition is not None:
        given = list(partition.tenants.all())
        if given and tenant not in given:
            raise Refused(
                {"partition": f"Partition {partition.slug} is not given to {tenant.slug}."}
            )
        members = set(partition.nodes.values_list("id", flat=True))
        nodes = [node for node in nodes if node.id in members]
    if not nodes:
        if partition is not None:
            raise Refused({"partition": f"Partition {partition.slug} has no nodes yet."})
        return []
    fitting = _of_kind(nodes, request)
    fitting = _of_size(fitting, request)
    fewest = request.fewest_devices or request.replicas * request.gpus_per_replica
    have = sum(_devices(node, request) for node in fitting)
    if have < fewest:
        raise Refused(
            {"replicas": f"It needs {count(fewest, 'device')}; the fleet has {have} to suit it."},
            id="too-large",
        )
    return fitting


def _of_kind(nodes: list[Node], request: JobRequest) -> list[Node]:
    kinds = Counter(device.kind for node in nodes for device in node.devices.all())
    if request.device_kind and request.device_kind not in kinds:
        known = ", ".join(sorted(kinds)) or "none"
        raise Refused({"device_kind": f"No node has {request.device_kind!r}. There is: {known}."})
    most = max((_devices(node, request) for node in nodes), default=0)
    if most < request.gpus_per_replica:
        field = "device_memory" if request.device_memory and not most else "gpus_per_replica"
        raise Refused({field: f"No node has more than {most} such devices; a replica sits on one."})
    return [node for node in nodes if _devices(node, request) >= request.gpus_per_replica]


def _devices(node: Node, request: JobRequest) -> int:
    return sum(
        (not request.device_kind or device.kind == request.device_kind)
        and (not request.device_memory or device.memory >= request.device_memory)
        for device in node.devices.all()
    )


def _of_size(nodes: list[Node], request: JobRequest) -> list[Node]:
    most_cpus = max(node.cpus for node in nodes)
    if request.cpus_per_replica > most_cpus:
        raise Refused(
            {"cpus_per_replica": f"The largest node that suits it has {count(most_cpus, 'CPU')}."}
        )
    most = max(node.memory for node in nodes)
    if request.memory_per_replica > most:
        raise Refused(
            {"memory_per_replica": f"The largest node that suits it has {most / 2**30:.1f} GiB."}
        )
    return [
        node
        for node in nodes
        if node.cpus >= request.cpus_per_replica and node.memory >= request.memory_per_replica
    ]
