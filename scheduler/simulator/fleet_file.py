"""A fleet from a TOML file, or a CSV of nodes; ``docs/simulator.md`` shows every key."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from scheduler.planner import Node, NodeId, Quota, Tenant, TenantId, Tier, TierId
from scheduler.simulator.arrivals import GIGABYTE
from scheduler.simulator.fleets import (
    TIERS,
    Absence,
    FailureLaw,
    Fleet,
    Links,
    Outage,
    grid,
    node,
    pool,
)
from scheduler.simulator.traces.rows import Row


class UnreadableFleetError(ValueError):
    """A fleet that cannot be built, with the key that is to blame."""


def fleet_named(text: str) -> Fleet:
    """A fleet from ``pool:N``, ``NxM`` or the path of a TOML or CSV file."""
    shape, _, size = text.partition(":")
    if shape == "pool" and size.isdigit() and int(size) > 0:
        return pool(int(size))
    nodes, cross, devices = text.partition("x")
    if cross and nodes.isdigit() and devices.isdigit() and int(nodes) and int(devices):
        return grid(int(nodes), int(devices))
    path = Path(text)
    if not path.is_file():
        raise UnreadableFleetError(
            f"{text!r} is neither pool:N, nor NxM (nodes x GPUs), nor a file"
        )
    return read_fleet(path)


def read_fleet(path: Path) -> Fleet:
    """Build the fleet that a file describes; raises ``UnreadableFleetError``."""
    if path.suffix == ".csv":
        return _listed_nodes(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UnreadableFleetError(f"{path}: {error}") from None
    try:
        return _fleet(table, path)
    except UnreadableFleetError:
        raise
    except KeyError as error:
        raise UnreadableFleetError(f"{path}: the key {error} is missing") from None
    except TypeError as error:
        # Python names the key: "missing 1 required keyword-only argument: 'gpus'".
        said = str(error).partition("() ")[2].replace("keyword-only argument", "key")
        raise UnreadableFleetError(
            f"{path}: {said.replace('keyword argument', 'key') or error}"
        ) from None
    except ValueError as error:
        raise UnreadableFleetError(f"{path}: {error}") from None


def _listed_nodes(path: Path) -> Fleet:
    """One node a line: ``name,gpus,kind,cpus,memory_gb``, or Alibaba openb's columns.

    Nodes without devices are left out.
    """
    with path.open(newline="", encoding="utf-8-sig") as lines:
        rows = [Row(number, cells) for number, cells in enumerate(csv.DictReader(lines), start=2)]
    read = _openb_node if rows and "cpu_milli" in rows[0].cells else _own_node
    nodes: dict[NodeId, Node] = {}
    for row in rows:
        try:
            one = read(row)
            if one.id in nodes or not one.id:
                raise ValueError("each node needs a name of its own")
        except ValueError as error:
            raise UnreadableFleetError(f"{path}, line {row.number}: {error}") from None
        if one.devices:
            nodes[one.id] = one
    if not nodes:
        raise UnreadableFleetError(f"{path}: no line names a node with devices")
    return Fleet(name=path.stem, nodes=tuple(nodes.values()))


def _own_node(row: Row) -> Node:
    return node(
        row.text("name"),
        row.whole("gpus"),
        kind=row.text("kind", "gpu"),
        cpus=row.amount("cpus", 0),
        memory=int(row.amount("memory_gb", 0) * GIGABYTE),
        rack=row.text("rack"),
        cluster=row.text("cluster"),
        region=row.text("region"),
    )


def _openb_node(row: Row) -> Node:
    return node(
        row.text("sn"),
        row.whole("gpu"),
        kind=row.text("model", "gpu"),
        cpus=row.amount("cpu_milli") / 1000,
        memory=row.whole("memory_mib") * 2**20,
    )


def _fleet(table: Mapping[str, Any], path: Path) -> Fleet:
    known = {"name", "nodes", "tenants", "tiers", "links", "capacity", "failures"}
    if unknown := sorted(set(table) - known):
        raise UnreadableFleetError(f"{path}: unknown key {unknown[0]!r}; there are {sorted(known)}")
    nodes = tuple(each for group in table["nodes"] for each in _nodes(**group))
    if len({each.id for each in nodes}) < len(nodes):
        raise ValueError("two nodes have the same name: give each group of nodes its own name")
    outages = [each for window in table.get("capacity", ()) for each in _outages(nodes, **window)]
    failures = dict(table.get("failures", {}))
    if log := failures.pop("log", None):
        outages += _logged(path.parent / log, {each.id for each in nodes})
    return Fleet(
        name=str(table.get("name", path.stem)),
        nodes=nodes,
        tenants=tuple(_tenant(**each) for each in table.get("tenants", ())),
        tiers=tuple(_tier(**each) for each in table.get("tiers", ())) or TIERS,
        links=Links(**{f"{key}": float(v) * GIGABYTE for key, v in table.get("links", {}).items()}),
        outages=tuple(sorted(outages)),
        failures=FailureLaw(**failures) if failures else None,
    )


def _nodes(
    *,
    name: str,
    count: int = 1,
    gpus: int,
    kind: str = "gpu",
    gpu_memory_gb: float = 0,
    cpus: float = 0,
    memory_gb: float = 0,
    rack_size: int = 0,
    cluster: str = "",
    region: str = "",
    partitions: list[str] | None = None,
) -> Iterator[Node]:
    if not isinstance(gpus, int) or not isinstance(count, int) or gpus < 0 or count < 0:
        raise ValueError(f"nodes {name!r}: count and gpus are whole numbers of at least 0")
    for number in range(count):
        yield node(
            name if count == 1 else f"{name}-{number:04}",
            gpus,
            kind=kind,
            device_memory=int(gpu_memory_gb * GIGABYTE),
            cpus=cpus,
            memory=int(memory_gb * GIGABYTE),
            rack=f"{cluster}/{name}-r{number // rack_size:03}" if rack_size else "",
            cluster=cluster,
            region=region,
            partitions=frozenset(partitions or ()),
        )


def _outages(
    nodes: tuple[Node, ...],
    *,
    nodes_like: str,
    away_from: float,
    until: float,
    every: float = 0,
    times: int = 1,
    notice: float = 600,
    share: float = 1.0,
) -> Iterator[Outage]:
    """A window in which nodes are switched off, announced ``notice`` seconds before."""
    matching = [each.id for each in nodes if fnmatchcase(each.id, nodes_like)]
    if not matching:
        raise ValueError(f"capacity: no node is called like {nodes_like!r}")
    chosen = matching[: round(len(matching) * share)]
    for turn in range(times if every else 1):
        start, end = away_from + turn * every, until + turn * every
        for each in chosen:
            warned = max(0.0, start - notice)
            if warned < start:
                yield Outage(at=warned, until=end, node=each, absence=Absence.DRAINING)
            yield Outage(at=start, until=end, node=each)


def _logged(path: Path, known: set[NodeId]) -> list[Outage]:
    """Failures that happened, from a CSV ``node,down_at,up_at`` in seconds."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        rows = [Row(number, cells) for number, cells in enumerate(csv.DictReader(lines), start=2)]
    outages = []
    for row in rows:
        name = NodeId(row.text("node"))
        try:
            if name not in known:
                raise ValueError(f"there is no node {name!r}")
            at, until = row.amount("down_at"), row.amount("up_at")
            if until <= at:
                raise ValueError(f"up_at {until:g} does not lie after down_at {at:g}")
        except ValueError as error:
            raise UnreadableFleetError(f"{path}, line {row.number}: {error}") from None
        outages.append(Outage(at=at, until=until, node=name))
    return outages


def _tenant(
    *,
    id: str,
    weight: float = 1.0,
    parent: str = "",
    quotas: Mapping[str, Mapping[str, Any]] | None = None,
) -> Tenant:
    return Tenant(
        id=TenantId(id),
        weight=weight,
        parent=TenantId(parent) if parent else None,
        quotas={kind: Quota(**quota) for kind, quota in (quotas or {}).items()},
    )


def _tier(*, id: str, rank: int, promise: float = 0.0, preemptible: bool = True) -> Tier:
    return Tier(id=TierId(id), rank=rank, promise=promise, preemptible=preemptible)
