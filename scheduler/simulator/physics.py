"""How long things take: moves, checkpoints and restores, and the pace of a squeezed job."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from scheduler.planner import MoveCost, Node
from scheduler.simulator.arrivals import GIGABYTE, Arrival
from scheduler.simulator.fleets import Links

PARTS = frozenset({"squeeze", "across_nodes", "across_racks", "across_clusters"})
"""Costs that are parts of the pace."""


class UnreadableCostsError(ValueError):
    """A file of costs that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds and bytes of a move.

    The defaults are those of the design (20 s and the transfer of the image) with the shares that
    the Singularity paper measured: what is not transfer takes 19 to 63 s for jobs of 4 GPUs.
    """

    checkpoint_s: float = 10.0
    """Seconds to freeze and to dump, whatever the size."""
    restore_s: float = 10.0
    """Seconds to build the containers and to thaw, whatever the size."""
    store_gb_s: float = 2.0
    """Gigabytes a second that one node writes to, or reads from, the chunk store."""
    image_gb_per_gpu: float = 8.0
    """Image of a job that names none, for each of its devices."""
    start_s: float = 0.0
    """Seconds from placing a job that has no image to its first step."""
    squeeze: float = 0.03
    """Part of the pace lost when several replicas share a device."""
    across_nodes: float = 0.0
    """Part of the pace lost by a job that lies on several nodes of one rack. This and what follows
    is off by default: a trace's durations were measured where its jobs ran."""
    across_racks: float = 0.0
    """The same where it lies in several racks of a cluster."""
    across_clusters: float = 0.0
    """The same where it lies in several clusters."""
    checkpoint_every_s: float = 1800.0
    """Period of the checkpoints that a lost node throws its jobs back to."""

    @classmethod
    def off(cls) -> Self:
        """Everything at once and for nothing, as idealised simulators have it."""
        return cls(checkpoint_s=0, restore_s=0, store_gb_s=0, image_gb_per_gpu=0, squeeze=0)

    @classmethod
    def read(cls, path: Path) -> Self:
        """The costs in a TOML file; keys that are not there keep their default."""
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        known = [each.name for each in fields(cls)]
        for key, number in table.items():
            if key not in known:
                raise UnreadableCostsError(f"{path}: unknown key {key!r}; there are {known}")
            if isinstance(number, bool) or not isinstance(number, int | float) or number < 0:
                raise UnreadableCostsError(f"{path}: {key} must be a number of at least 0")
            if key in PARTS and number >= 1:
                raise UnreadableCostsError(f"{path}: {key} is a part of the pace, below 1")
        return cls(**{key: float(number) for key, number in table.items()})

    def image(self, arrival: Arrival) -> int:
        """Bytes of the job's checkpoint."""
        if arrival.image is not None:
            return arrival.image
        return int(self.image_gb_per_gpu * GIGABYTE) * arrival.gpus

    def move(self, image: int, sources: int, targets: int, link: float | None = None) -> MoveCost:
        """Seconds to take, carry and restore an image from some nodes to some others.

        Nodes write and read side by side. ``link`` is bytes a second between the nodes; ``None``
        means the image stays where it is.
        """
        written = read = carried = 0.0
        if self.store_gb_s:
            written = image / max(1, sources) / (self.store_gb_s * GIGABYTE)
            read = image / max(1, targets) / (self.store_gb_s * GIGABYTE)
            carried = image / max(1, min(sources, targets)) / link if link else 0.0
        return MoveCost(
            checkpoint_s=self.checkpoint_s + written,
            transfer_s=carried,
            restore_s=self.restore_s + read,
        )

    def pace(self, devices: int, full: int) -> float:
        """Work a second of a job on some of its devices, 1 at full size."""
        if devices >= full:
            return 1.0
        return devices / full * (1 - self.squeeze)

    @property
    def nearness_counts(self) -> bool:
        """Whether it matters to a job's pace how near its replicas are to each other."""
        return bool(self.across_nodes or self.across_racks or self.across_clusters)

    def together(self, nodes: Sequence[Node]) -> float:
        """The part of its pace that a job keeps which lies on these nodes."""
        first = nodes[0]
        if all(node.id == first.id for node in nodes):
            return 1.0
        if any((node.region, node.cluster) != (first.region, first.cluster) for node in nodes):
            return 1.0 - self.across_clusters
        if any(node.rack != first.rack for node in nodes):
            return 1.0 - self.across_racks
        return 1.0 - self.across_nodes


def slowest_link(links: Links, sources: Sequence[Node], targets: Sequence[Node]) -> float | None:
    """Bytes a second of the worst pair that an image travels; ``None`` when it stays."""
    pairs = [(one, other) for one in sources for other in targets if one.id != other.id]
    return min((links.between(*pair) for pair in pairs), default=None)
