"""Nodes with their devices, read as plain tuples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from functools import lru_cache
from json import loads
from typing import Any

from django.db.models import Aggregate, TextField
from django.db.models.functions import Cast

from portal.models import Device, Node, Partition
from scheduler import planner
from scheduler.live.naming import device_id

Keys = Collection[int] | None


class Rows(Aggregate):
    """Some columns of all rows of a group as one JSON list of lists, in any order.

    Nodes are alike: most of these texts are, too, and need to be read but once.
    """

    function = "ROWS"
    output_field = TextField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "json_agg(json_build_array(%(expressions)s))::text"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "json_group_array(json_array(%(expressions)s))"
        return self.as_sql(compiler, connection, template=template, **context)


def names(keys: Keys = None) -> dict[int, planner.NodeId]:
    """Names of all nodes by id, also of those that no agent has ever said hello for."""
    rows = Node.objects.order_by()
    if keys is not None:
        rows = rows.filter(id__in=keys)
    return {id: planner.NodeId(name) for id, name in rows.values_list("id", "name")}


def nodes(keys: Keys = None) -> dict[int, planner.Node]:
    """Enrolled nodes by id."""
    rows = Node.objects.exclude(heard_at=None)
    if keys is not None:
        rows = rows.filter(id__in=keys)
    devices, partitions = _devices(keys), _partitions(keys)
    columns = rows.order_by("id").values_list(
        "id", "name", "cpus", "memory", "rack", "cluster", "region", "cordoned", "draining",
        "lost_at", Cast("abilities", TextField()),
    )  # fmt: skip
    found: dict[int, planner.Node] = {}
    for (
        id, name, cpus, memory, rack, cluster, region, cordoned, draining, lost_at, abilities,
    ) in columns:  # fmt: skip
        migrate, network = _abilities(abilities)
        found[id] = planner.Node(
            id=planner.NodeId(name),
            devices=tuple(
                planner.Device(id=device_id(name, uid), kind=kind, memory=size, sick=bool(sick))
                for _, uid, kind, size, sick in _in_order(devices.get(id, "[]"))
            ),
            cpus=cpus,
            memory=memory,
            rack=rack,
            cluster=cluster,
            region=region,
            partitions=frozenset(partitions.get(id, ())),
            cordoned=cordoned,
            draining=draining,
            lost=lost_at is not None,
            can_restore=migrate,
            can_run_together=network,
        )
    return found


@lru_cache(maxsize=1024)
def _abilities(text: str) -> tuple[bool, bool]:
    """Whether a node can restore others' checkpoints, and share a job with other nodes."""
    abilities = loads(text)
    migrate, network = (
        bool(abilities.get(name, {}).get("able")) for name in ("migrate", "network")
    )
    return migrate, network


def _devices(keys: Keys) -> dict[int, str]:
    rows = Device.objects.order_by()
    if keys is not None:
        rows = rows.filter(node__in=keys)
    listed = rows.values("node_id").annotate(all=Rows("index", "uid", "kind", "memory", "sick"))
    return dict(listed.values_list("node_id", "all"))


@lru_cache(maxsize=1024)
def _in_order(text: str) -> list[tuple[int, str, str, int, str]]:
    """Index, uid, kind, memory and trouble of each device."""
    return sorted(tuple(row) for row in loads(text))


def _partitions(keys: Keys) -> dict[int, list[str]]:
    rows = Partition.nodes.through.objects.order_by()
    if keys is not None:
        rows = rows.filter(node__in=keys)
    found: dict[int, list[str]] = defaultdict(list)
    for node, slug in rows.values_list("node_id", "partition__slug"):
        found[node].append(slug)
    return found
