"""The fleet a simulation runs on: nodes, tenants, tiers, links, and when nodes are away.

A fleet comes from ``pool:N`` (one counted pool, no topology), from ``NxM`` (so many nodes of so
many devices) or from a TOML file (``fleet_file``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from scheduler.planner import Device, DeviceId, Node, NodeId, Tenant, Tier, TierId

TIERS = (
    Tier(id=TierId("premium"), rank=2, promise=0.95, preemptible=True),
    Tier(id=TierId("standard"), rank=1, promise=0.70, preemptible=True),
    Tier(id=TierId("basic"), rank=0, promise=0.0, preemptible=True),
)
"""The tiers of a fleet that names none."""


class Absence(StrEnum):
    """How a node is away."""

    LOST = "lost"
    """At once: what ran there goes back to its last checkpoint."""
    DRAINING = "draining"
    """Announced: what runs there is moved away in time."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Outage:
    """One node away from ``at`` until ``until``, in seconds from the start of the simulation."""

    at: float
    until: float
    node: NodeId
    absence: Absence = Absence.LOST


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLaw:
    """Nodes fail independently, after exponential times, for exponential repairs; all seconds."""

    mean_between_s: float
    mean_repair_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Bytes a second between two nodes, by the nearest level of the topology they share."""

    rack: float = 12.5e9
    cluster: float = 6.25e9
    region: float = 2.5e9
    world: float = 0.625e9

    def between(self, one: Node, other: Node) -> float:
        """Bytes a second from one node to another; within a node as within its rack."""
        if one.id == other.id or (one.rack and one.rack == other.rack):
            return self.rack
        if one.cluster == other.cluster:
            return self.cluster
        return self.region if one.region == other.region else self.world


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Everything about the machines that a simulation needs."""

    name: str
    nodes: tuple[Node, ...]
    tenants: tuple[Tenant, ...] = ()
    tiers: tuple[Tier, ...] = TIERS
    links: Links = field(default_factory=Links)
    outages: tuple[Outage, ...] = ()
    failures: FailureLaw | None = None

    @property
    def devices(self) -> int:
        return sum(len(node.devices) for node in self.nodes)

    @property
    def largest_node(self) -> int:
        """Devices of the largest node: jobs above it are split over several."""
        return max((len(node.devices) for node in self.nodes), default=1)


def pool(devices: int) -> Fleet:
    """One counted pool: a single node that holds them all, so that only the count matters."""
    return Fleet(name=f"pool:{devices}", nodes=(node("pool", devices),))


def grid(nodes: int, devices: int, *, rack_size: int = 4) -> Fleet:
    """Equal nodes in racks of one cluster."""
    return Fleet(
        name=f"{nodes}x{devices}",
        nodes=tuple(
            node(f"n{number:04}", devices, rack=f"r{number // rack_size:03}")
            for number in range(nodes)
        ),
    )


def node(
    name: str,
    devices: int,
    *,
    kind: str = "gpu",
    device_memory: int = 0,
    cpus: float = 0.0,
    memory: int = 0,
    rack: str = "",
    cluster: str = "",
    region: str = "",
    partitions: frozenset[str] = frozenset(),
) -> Node:
    """A node whose devices are numbered from 0."""
    width = len(str(max(0, devices - 1)))
    return Node(
        id=NodeId(name),
        devices=tuple(
            Device(id=DeviceId(f"{name}/{number:0{width}}"), kind=kind, memory=device_memory)
            for number in range(devices)
        ),
        cpus=cpus,
        memory=memory,
        rack=rack,
        cluster=cluster,
        region=region,
        partitions=partitions,
    )


def partition_of(partition: str, kinds: tuple[str, ...]) -> str:
    """The partition that a job is confined to, where it takes several kinds one made for them.

    The planner's jobs name one kind or none, so "any of these" is said by a set of nodes.
    """
    if len(kinds) < 2:
        return partition
    return f"{partition} any of {', '.join(kinds)}".strip()


def with_mixtures(fleet: Fleet, asked: Iterable[tuple[str, tuple[str, ...]]]) -> Fleet:
    """The fleet with the partitions that stand for the kinds asked for; see ``partition_of``.

    A node belongs to one when all its devices are of those kinds.
    """
    mixtures = sorted({each for each in asked if len(each[1]) > 1})
    if not mixtures:
        return fleet
    return replace(fleet, nodes=tuple(_admitting(each, mixtures) for each in fleet.nodes))


def _admitting(one: Node, mixtures: Iterable[tuple[str, tuple[str, ...]]]) -> Node:
    present = {device.kind for device in one.devices}
    more = {
        partition_of(partition, kinds)
        for partition, kinds in mixtures
        if present <= set(kinds) and (not partition or partition in one.partitions)
    }
    return replace(one, partitions=one.partitions | more) if more else one


def describe(fleet: Fleet) -> Mapping[str, object]:
    """The fleet in a few numbers, for reports."""
    kinds: dict[str, int] = {}
    for each in fleet.nodes:
        for device in each.devices:
            kinds[device.kind] = kinds.get(device.kind, 0) + 1
    return {"name": fleet.name, "nodes": len(fleet.nodes), "devices": fleet.devices, "kinds": kinds}
