"""The nodes as the planner searches them: pools of like bins, indexed by free devices as bit sets.

A bin is the healthy devices of one kind on one node. A pool is the bins of one kind in one cluster;
bit *i* of a pool's integers stands for its bin *i*, so that "bins with three free devices in
partition p" is one AND. All of it depends on the facts only, never on the way they came about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scheduler.planner.needs import Need, natural
from scheduler.planner.snapshot import DeviceId, JobId, Node, NodeId

PLENTY = 1 << 60


class Host:
    """A node with what is free of its CPUs (thousandths) and memory (bytes)."""

    __slots__ = ("_where", "bins", "memory", "milli", "node", "usable")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.bins: list[Bin] = []
        self.milli = round(node.cpus * 1000) or PLENTY
        self.memory = node.memory or PLENTY
        self.usable = not (node.cordoned or node.draining or node.lost)
        self._where: dict[DeviceId, tuple[Bin, int]] | None = None

    def where(self, device: DeviceId) -> tuple[Bin, int] | None:
        """The bin and the bit of a device; none if it is sick or unknown."""
        if self._where is None:
            self._where = {
                id_: (bin_, 1 << index)
                for bin_ in self.bins
                for index, id_ in enumerate(bin_.ids)
                if bin_.all >> index & 1
            }
        return self._where.get(device)

    def renew(self, node: Node) -> None:
        """Take in new flags and sizes; devices are the same."""
        self.milli += (round(node.cpus * 1000) or PLENTY) - (round(self.node.cpus * 1000) or PLENTY)
        self.memory += (node.memory or PLENTY) - (self.node.memory or PLENTY)
        self.node = node
        self.usable = not (node.cordoned or node.draining or node.lost)


class Bin:
    """The devices of one kind on one node."""

    __slots__ = ("all", "bit", "count", "free", "host", "ids", "index", "jobs", "pool")

    def __init__(self, host: Host, ids: tuple[DeviceId, ...], healthy: int) -> None:
        self.host = host
        self.ids = ids
        self.all = healthy
        self.free = healthy
        self.count = healthy.bit_count()
        self.jobs: dict[JobId, int] = {}
        self.pool: Pool
        self.index = 0
        self.bit = 0

    def devices(self, mask: int) -> tuple[DeviceId, ...]:
        """The ids of the devices in ``mask``."""
        if mask + 1 == 1 << len(self.ids):
            return self.ids
        return tuple(id_ for index, id_ in enumerate(self.ids) if mask >> index & 1)


class Pool:
    """The bins of one device kind and memory in one cluster."""

    __slots__ = (
        "bins", "by_free", "cluster", "filters", "free", "joining", "kind", "memory", "partitions",
        "racks", "region", "restoring", "size", "usable", "whole",
    )  # fmt: skip

    def __init__(self, region: str, cluster: str, kind: str, memory: int, bins: list[Bin]) -> None:
        self.region, self.cluster, self.kind, self.memory = region, cluster, kind, memory
        self.bins = bins
        self.size = max(len(bin_.ids) for bin_ in bins)
        self.by_free = [0] * (self.size + 1)
        self.whole = [0] * (self.size + 1)
        """Per number of devices, sick ones too: the bins that have so many."""
        for index, bin_ in enumerate(bins):
            bin_.pool, bin_.index, bin_.bit = self, index, 1 << index
            self.by_free[bin_.count] |= bin_.bit
            self.whole[len(bin_.ids)] |= bin_.bit
        racks: dict[str, int] = {}
        for bin_ in bins:
            rack = bin_.host.node.rack
            racks[rack] = racks.get(rack, 0) | bin_.bit
        self.racks = tuple(racks.values())
        self.filters: dict[Need, int] = {}
        self.look()

    def look(self) -> None:
        """Read what the nodes are able and allowed to do, again."""
        self.usable = self.joining = self.restoring = self.free = 0
        self.partitions: dict[str, int] = {}
        for bin_ in self.bins:
            host, node = bin_.host, bin_.host.node
            if host.usable:
                self.usable |= bin_.bit
                self.free += bin_.count
            if node.can_run_together:
                self.joining |= bin_.bit
            if node.can_restore:
                self.restoring |= bin_.bit
            for partition in node.partitions:
                self.partitions[partition] = self.partitions.get(partition, 0) | bin_.bit
        self.filters.clear()

    def set_free(self, bin_: Bin, free: int) -> None:
        """Change which devices of a bin are free."""
        old, new = bin_.count, free.bit_count()
        bin_.free = free
        if old != new:
            self.by_free[old] ^= bin_.bit
            self.by_free[new] ^= bin_.bit
            bin_.count = new
            if self.usable & bin_.bit:
                self.free += new - old

    def allowed(self, need: Need) -> int:
        """The usable bins that suit ``need``, free or not."""
        mask = self.filters.get(need)
        if mask is None:
            mask = self.suited(need) & self.usable
            if len(self.filters) > 256:
                self.filters.clear()
            self.filters[need] = mask
        return mask

    def suited(self, need: Need) -> int:
        """The bins that suit ``need``, usable now or not."""
        mask = (1 << len(self.bins)) - 1
        if need.partition:
            mask &= self.partitions.get(need.partition, 0)
        if need.restore:
            mask &= self.restoring
        if need.only:
            mask &= self.on(need.only)
        if need.avoid:
            mask &= ~self.on(need.avoid)
        return mask

    def on(self, nodes: Iterable[NodeId]) -> int:
        """The bins on these nodes."""
        wanted = frozenset(nodes)
        return sum(bin_.bit for bin_ in self.bins if bin_.host.node.id in wanted)

    def each(self, mask: int) -> Iterator[Bin]:
        """The bins of a bit set, in order."""
        while mask:
            low = mask & -mask
            yield self.bins[low.bit_length() - 1]
            mask ^= low


class Fleet:
    """All hosts and pools."""

    __slots__ = ("by_kind", "hosts", "pools", "troubled")

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.hosts: dict[NodeId, Host] = {}
        grouped: dict[tuple[str, str, str, int], list[Bin]] = {}
        for node in sorted(nodes, key=lambda node: (node.rack, natural(node.id))):
            host = self.hosts[node.id] = Host(node)
            for (kind, memory), (ids, healthy) in _kinds(node).items():
                bin_ = Bin(host, ids, healthy)
                host.bins.append(bin_)
                key = (node.region, node.cluster, kind, memory)
                grouped.setdefault(key, []).append(bin_)
        self.pools = [Pool(*key, bins) for key, bins in sorted(grouped.items())]
        self.by_kind: dict[str, list[Pool]] = {}
        for pool in self.pools:
            self.by_kind.setdefault(pool.kind, []).append(pool)
        self.troubled = {id_ for id_, host in self.hosts.items() if _troubled(host.node)}

    def suiting(self, need: Need) -> list[Pool]:
        """The pools whose devices are of the kind and memory needed."""
        found = self.by_kind.get(need.kind, []) if need.kind else self.pools
        if need.device_memory:
            return [pool for pool in found if pool.memory >= need.device_memory]
        return found

    def suited(self, need: Need) -> tuple[tuple[str, ...], dict[Pool, int] | None]:
        """The kinds that suit ``need``, and the usable bins; ``None``: all of these kinds."""
        where = {pool: pool.allowed(need) for pool in self.suiting(need)}
        kinds = tuple(sorted({pool.kind for pool in where}))
        pools = [pool for kind in kinds for pool in self.by_kind[kind]]
        if all(where.get(pool, 0) == pool.usable for pool in pools):
            return kinds, None
        return kinds, {pool: mask for pool, mask in where.items() if mask}

    def free(self, kind: str) -> int:
        """Free devices of a kind on usable nodes."""
        return sum([pool.free for pool in self.by_kind.get(kind, ())])

    def renew(self, nodes: Iterable[Node]) -> bool:
        """Take in changed nodes; false if devices or places changed too: then build it anew."""
        touched: dict[int, Pool] = {}
        for node in nodes:
            host = self.hosts.get(node.id)
            if host is None or not _same_place(host.node, node):
                return False
            host.renew(node)
            self.troubled.discard(node.id)
            if _troubled(node):
                self.troubled.add(node.id)
            touched.update((id(bin_.pool), bin_.pool) for bin_ in host.bins)
        for pool in touched.values():
            pool.look()
        return True


def _troubled(node: Node) -> bool:
    return node.draining or node.lost or any(device.sick for device in node.devices)


def _same_place(old: Node, new: Node) -> bool:
    """Whether only flags changed: not the devices, their health, or where the node stands."""
    return (
        old.devices == new.devices
        and old.rack == new.rack
        and old.cluster == new.cluster
        and old.region == new.region
    )


def _kinds(node: Node) -> dict[tuple[str, int], tuple[tuple[DeviceId, ...], int]]:
    """Per kind and memory: the ids, and the healthy ones as bits."""
    first = node.devices[0] if node.devices else None
    if first and all(
        device.kind == first.kind and device.memory == first.memory and not device.sick
        for device in node.devices
    ):
        ids = tuple([device.id for device in node.devices])
        return {(first.kind, first.memory): (ids, (1 << len(ids)) - 1)}
    grouped: dict[tuple[str, int], list[tuple[DeviceId, bool]]] = {}
    for device in node.devices:
        grouped.setdefault((device.kind, device.memory), []).append((device.id, device.sick))
    return {
        key: (
            tuple(id_ for id_, _ in found),
            sum(1 << index for index, (_, sick) in enumerate(found) if not sick),
        )
        for key, found in grouped.items()
    }
