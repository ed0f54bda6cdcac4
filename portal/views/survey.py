"""A large fleet in figures that a canvas can draw: every device in a few bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django.db.models import QuerySet

from portal import telemetry
from portal.models import Device, Node, User
from portal.views.floor import status_of
from portal.views.occupancy import Occupant, colour_tenants, find_occupants

FREE, HIDDEN_JOB = 0, -1
"""What stands for a job where there is none, and where the user may not know which."""


@dataclass(slots=True, kw_only=True)
class Cluster:
    """What a cluster holds; devices are those that can be used."""

    region: str
    cluster: str
    nodes: int = 0
    away: int = 0
    """Nodes that take nothing new: lost, draining, cordoned or not heard of yet."""
    devices: int = 0
    held: int = 0
    used: float = 0.0
    racks: list[tuple[str, list[list[Any]]]] = field(default_factory=list)
    """Racks with their nodes: name, status, and for each device its job, its use and its memory in
    per cent (-1: unknown), and the places of the sick ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The fleet, or a part of it, cluster by cluster."""

    clusters: list[Cluster]
    jobs: dict[int, tuple[str, str]]
    """The jobs that the user may see there: name and tenant."""
    colours: Mapping[str, int]

    @property
    def devices(self) -> int:
        return sum(cluster.devices for cluster in self.clusters)

    @property
    def held(self) -> int:
        return sum(cluster.held for cluster in self.clusters)

    @property
    def used(self) -> float:
        return sum(cluster.used for cluster in self.clusters)

    @property
    def racks(self) -> list[str]:
        return [rack for cluster in self.clusters for rack, _ in cluster.racks]

    @property
    def tenants(self) -> list[tuple[str, int]]:
        """Slugs of the tenants that hold devices, with their colours."""
        return [(slug, self.colours[slug]) for slug in sorted({t for _, t in self.jobs.values()})]

    def to_json(self) -> dict[str, Any]:
        return {
            "devices": self.devices,
            "held": self.held,
            "used": round(self.used, 1),
            "jobs": self.jobs,
            "colours": self.colours,
            "clusters": [
                {"region": c.region, "cluster": c.cluster, "racks": c.racks} for c in self.clusters
            ],
        }


def take_survey(user: User, asked: QuerySet[Node]) -> Survey:
    """Answer these nodes as a user may see them, in five queries and one look at the broker."""
    nodes = list(asked)
    colours = colour_tenants(user)
    occupants = find_occupants(colours)
    use = telemetry.latest(node.name for node in nodes)
    devices = devices_of(asked)
    jobs: dict[int, tuple[str, str]] = {}
    clusters = []
    for (region, name), rows in groupby(nodes, key=lambda node: (node.region, node.cluster)):
        cluster = Cluster(region=region, cluster=name)
        for rack, there in groupby(rows, key=lambda node: node.rack):
            drawn = [
                count_node(cluster, node, devices.get(node.pk, []), occupants, jobs, use)
                for node in there
            ]
            cluster.racks.append((rack, drawn))
        clusters.append(cluster)
    return Survey(clusters=clusters, jobs=jobs, colours=colours)


def devices_of(nodes: QuerySet[Node]) -> dict[int, list[tuple[int, str, str, int]]]:
    """Node, id, sickness and memory of every device, by node."""
    rows = Device.objects.filter(node__in=nodes.order_by()).order_by("node_id", "index", "uid")
    told = rows.values_list("node_id", "uid", "sick", "memory").iterator()
    return {node: list(group) for node, group in groupby(told, key=lambda row: row[0])}


def count_node(
    cluster: Cluster,
    node: Node,
    devices: list[tuple[int, str, str, int]],
    occupants: Mapping[tuple[int, str], Occupant],
    jobs: dict[int, tuple[str, str]],
    use: Mapping[str, Mapping[str, Any]],
) -> list[Any]:
    """Add a node to its cluster's figures, and answer what is drawn of it."""
    status, now = status_of(node), use.get(node.name, {}).get("devices", {})
    cluster.nodes += 1
    cluster.away += status != "well"
    held: list[int] = []
    busy: list[int] = []
    filled: list[int] = []
    for _, uid, sick, memory in devices:
        occupant, told = occupants.get((node.pk, uid)), now.get(uid)
        share = told["utilisation"] if told else None
        if node.well and not sick:
            cluster.devices += 1
            cluster.held += occupant is not None
            cluster.used += share or 0.0
        if occupant and occupant.job:
            jobs[occupant.job] = (occupant.name, occupant.tenant)
        held.append(FREE if occupant is None else occupant.job or HIDDEN_JOB)
        busy.append(in_percent(share))
        filled.append(in_percent(told["memory"] / memory if told and memory else None))
    return [node.name, status, held, busy, filled, list(sick_places(devices))]


def sick_places(devices: list[tuple[int, str, str, int]]) -> Iterator[int]:
    return (place for place, (_, _, sick, _) in enumerate(devices) if sick)


def in_percent(share: float | None) -> int:
    return -1 if share is None else round(100 * min(1.0, max(0.0, share)))
