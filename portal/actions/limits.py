"""What can be said no to at once: quotas, and requests that this fleet can never serve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Count, QuerySet, Sum, TextField
from django.db.models.functions import Cast

from portal.choices import PlacementState
from portal.drawings.figures import count
from portal.models import Device, Node, Partition, Placement, Quota, Tenant
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


class Host(NamedTuple):
    """What a request looks at of a node."""

    id: int
    cpus: float
    memory: int
    abilities: str
    """As JSON."""
    devices: int
    """Those that suit the request."""


def check_fleet(request: JobRequest, tenant: Tenant, partition: Partition | None) -> list[Node]:
    """Of the nodes that could ever hold a replica, one for all that are able to the same.

    Refuses a request that no present node can serve. Nodes that are away, cordoned or busy count:
    they come back, and waiting is not wrong.
    """
    nodes = Node.objects.exclude(heard_at=None).order_by()
    if partition is not None:
        given = list(partition.tenants.all())
        if given and tenant not in given:
            raise Refused(
                {"partition": f"Partition {partition.slug} is not given to {tenant.slug}."}
            )
        nodes = nodes.filter(partitions=partition)
    hosts = _hosts(nodes, request)
    if not hosts:
        if partition is not None:
            raise Refused({"partition": f"Partition {partition.slug} has no nodes yet."})
        return []
    fitting = _of_kind(hosts, nodes, request)
    fitting = _of_size(fitting, request)
    fewest = request.fewest_devices or request.replicas * request.gpus_per_replica
    have = sum(host.devices for host in fitting)
    if have < fewest:
        raise Refused(
            {"replicas": f"It needs {count(fewest, 'device')}; the fleet has {have} to suit it."},
            id="too-large",
        )
    kinds: dict[str, int] = {}
    for host in fitting:
        kinds.setdefault(host.abilities, host.id)
    return list(Node.objects.filter(id__in=kinds.values()))


def _hosts(nodes: QuerySet[Node], request: JobRequest) -> list[Host]:
    """The nodes as plain tuples: of thousands, instances would take seconds."""
    devices = Device.objects.filter(node__in=nodes, memory__gte=request.device_memory).order_by()
    if request.device_kind:
        devices = devices.filter(kind=request.device_kind)
    suit = dict(devices.values_list("node_id").annotate(Count("id")))
    rows = nodes.order_by("id").values_list("id", "cpus", "memory", Cast("abilities", TextField()))
    return [
        Host(id, cpus, memory, abilities, suit.get(id, 0)) for id, cpus, memory, abilities in rows
    ]


def _of_kind(hosts: list[Host], nodes: QuerySet[Node], request: JobRequest) -> list[Host]:
    most = max(host.devices for host in hosts)
    if not most and request.device_kind:
        there = Device.objects.filter(node__in=nodes).order_by("kind")
        kinds = list(there.values_list("kind", flat=True).distinct())
        if request.device_kind not in kinds:
            known = ", ".join(kinds) or "none"
            raise Refused(
                {"device_kind": f"No node has {request.device_kind!r}. There is: {known}."}
            )
    if most < request.gpus_per_replica:
        field = "device_memory" if request.device_memory and not most else "gpus_per_replica"
        raise Refused({field: f"No node has more than {most} such devices; a replica sits on one."})
    return [host for host in hosts if host.devices >= request.gpus_per_replica]


def _of_size(hosts: list[Host], request: JobRequest) -> list[Host]:
    most_cpus = max(host.cpus for host in hosts)
    if request.cpus_per_replica > most_cpus:
        raise Refused(
            {"cpus_per_replica": f"The largest node that suits it has {count(most_cpus, 'CPU')}."}
        )
    most = max(host.memory for host in hosts)
    if request.memory_per_replica > most:
        raise Refused(
            {"memory_per_replica": f"The largest node that suits it has {most / 2**30:.1f} GiB."}
        )
    return [
        host
        for host in hosts
        if host.cpus >= request.cpus_per_replica and host.memory >= request.memory_per_replica
    ]
