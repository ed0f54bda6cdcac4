"""A large fleet in figures that a canvas can draw: every device in a few bytes.

Everyone who looks is shown the same fleet, but for what they may not know of other tenants' jobs.
So a process looks at it once in a while for all of them, and each gets the part asked for.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from django.db.models import TextField
from django.db.models.functions import Cast

from portal import telemetry
from portal.choices import PlacementState
from portal.models import Device, Job, Node, PlacedReplica, User
from portal.views.floor import status_of
from portal.views.occupancy import colour_tenants

FREE, HIDDEN_JOB = 0, -1
"""What stands for a job where there is none, and where the user may not know which."""
KEPT_S = 4.0
"""How long one look at a large fleet is shown; pages ask every five seconds."""
LARGE = 1024
"""Devices from which on a look is kept at all."""
HOLDER = 2
"""Where a drawn node tells the jobs on its devices."""


class Stand(NamedTuple):
    """What is read of a node: instances of thousands would take most of the time."""

    id: int
    name: str
    region: str
    cluster: str
    rack: str
    cordoned: bool
    draining: bool
    heard_at: datetime | None
    lost_at: datetime | None


@dataclass(slots=True, kw_only=True)
class Rack:
    """What a rack holds; devices are those that can be used."""

    region: str
    cluster: str
    name: str
    nodes: list[list[Any]]
    """Name, status, and for each device its job, its use and its memory in per cent (-1: unknown),
    and the places of the sick ones."""
    away: int = 0
    """Nodes that take nothing new: lost, draining, cordoned or not heard of yet."""
    devices: int = 0
    held: int = 0
    used: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Some racks of a cluster, as one user may see them."""

    region: str
    cluster: str
    nodes: int
    away: int
    devices: int
    held: int
    used: float
    racks: list[tuple[str, list[list[Any]]]]


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


class Look(NamedTuple):
    """The whole fleet at one moment; what it holds is never changed."""

    racks: list[Rack]
    jobs: dict[int, tuple[str, str]]
    """All jobs that hold devices: name and tenant."""


class _Kept:
    """The last look of this process; one thread looks, and the others wait for what it sees."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._look: Look | None = None
        self._until = 0.0

    def get(self) -> Look:
        with self._lock:
            if self._look is None or time.monotonic() > self._until:
                self._look = look()
                large = sum(rack.devices for rack in self._look.racks) > LARGE
                self._until = time.monotonic() + KEPT_S if large else 0.0
            return self._look


_kept = _Kept()


def take_survey(user: User, places: Mapping[str, str]) -> Survey:
    """Answer the nodes of the region, cluster and rack that are named, as a user may see them."""
    seen = _kept.get()
    colours = colour_tenants(user)
    known = {FREE} | {job for job, (_, tenant) in seen.jobs.items() if tenant in colours}
    wanted = [
        rack
        for rack in seen.racks
        if rack.region == places.get("region", rack.region)
        and rack.cluster == places.get("cluster", rack.cluster)
        and rack.name == places.get("rack", rack.name)
    ]
    clusters = []
    for (region, name), group in groupby(wanted, key=lambda rack: (rack.region, rack.cluster)):
        racks = list(group)
        cluster = Cluster(
            region=region,
            cluster=name,
            nodes=sum(len(rack.nodes) for rack in racks),
            away=sum(rack.away for rack in racks),
            devices=sum(rack.devices for rack in racks),
            held=sum(rack.held for rack in racks),
            used=sum(rack.used for rack in racks),
            racks=[(rack.name, [show_node(node, known) for node in rack.nodes]) for rack in racks],
        )
        clusters.append(cluster)
    present = {
        job
        for cluster in clusters
        for _, nodes in cluster.racks
        for node in nodes
        for job in node[HOLDER]
        if job > 0
    }
    jobs = {job: seen.jobs[job] for job in sorted(present)}
    return Survey(clusters=clusters, jobs=jobs, colours=colours)


def show_node(node: list[Any], known: set[int]) -> list[Any]:
    """A drawn node as somebody may see it who knows these jobs."""
    if known.issuperset(node[HOLDER]):
        return node
    held = [job if job in known else HIDDEN_JOB for job in node[HOLDER]]
    return [*node[:HOLDER], held, *node[HOLDER + 1 :]]


def look() -> Look:
    """Look at the whole fleet, in four queries and with one look at the broker."""
    nodes = [Stand(*row) for row in Node.objects.values_list(*Stand._fields)]
    devices = devices_by_node()
    held = holders()
    use = telemetry.latest(node.name for node in nodes)
    racks = []
    for (region, cluster, name), there in groupby(
        nodes, key=lambda node: (node.region, node.cluster, node.rack)
    ):
        rack = Rack(region=region, cluster=cluster, name=name, nodes=[])
        for node in there:
            now = use.get(node.name, {}).get("devices", {})
            rack.nodes.append(draw_node(rack, node, devices.get(node.id, []), held, now))
        racks.append(rack)
    there_are = Job.objects.filter(placements__state=PlacementState.ACTIVE).order_by().distinct()
    jobs = {
        id: (title, tenant)
        for id, title, tenant in there_are.values_list("id", "name", "tenant__slug")
    }
    jobs |= dict.fromkeys(set(held.values()) - jobs.keys(), ("", ""))
    return Look(racks, jobs)


def devices_by_node() -> dict[int, list[tuple[int, str, str, int]]]:
    """Node, id, sickness and memory of every device, by node."""
    rows = Device.objects.order_by("node_id", "index", "uid")
    told = rows.values_list("node_id", "uid", "sick", "memory").iterator()
    return {node: list(group) for node, group in groupby(told, key=lambda row: row[0])}


def holders() -> dict[tuple[int, str], int]:
    """The job on every held device."""
    seats = PlacedReplica.objects.filter(placement__state=PlacementState.ACTIVE).order_by()
    rows = seats.values_list("node_id", Cast("devices", TextField()), "placement__job_id")
    return {(node, uid): job for node, devices, job in rows.iterator() for uid in words(devices)}


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """A JSON list of words; the same few come again and again."""
    return tuple(json.loads(text))


def draw_node(
    rack: Rack,
    node: Stand,
    devices: list[tuple[int, str, str, int]],
    holders: Mapping[tuple[int, str], int],
    now: Mapping[str, Mapping[str, Any]],
) -> list[Any]:
    """Add a node to its rack's figures, and answer what is drawn of it."""
    status = status_of(node)
    rack.away += status != "well"
    jobs = [holders.get((node.id, uid), FREE) for _, uid, _, _ in devices]
    sick = [place for place, (_, _, illness, _) in enumerate(devices) if illness]
    well = node.heard_at is not None and node.lost_at is None
    if well:
        rack.devices += len(devices) - len(sick)
        rack.held += sum(job != FREE for job in jobs) - sum(jobs[place] != FREE for place in sick)
    if not now:
        unknown = [-1] * len(devices)
        return [node.name, status, jobs, unknown, unknown, sick]
    busy, filled = [], []
    for _, uid, illness, memory in devices:
        told = now.get(uid)
        share = told["utilisation"] if told else None
        if well and not illness:
            rack.used += share or 0.0
        busy.append(in_percent(share))
        filled.append(in_percent(told["memory"] / memory if told and memory else None))
    return [node.name, status, jobs, busy, filled, sick]


def in_percent(share: float | None) -> int:
    return -1 if share is None else round(100 * min(1.0, max(0.0, share)))
