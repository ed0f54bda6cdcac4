"""The floor plan of the fleet: racks of nodes with a tile per device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, Protocol

from django.db.models import QuerySet

from portal import telemetry
from portal.drawings.figures import size
from portal.models import Device, Node, User
from portal.views.occupancy import HIDDEN, Occupant, colour_tenants, find_occupants

STATUS = {
    "new": ("quiet", "Not heard of yet"),
    "lost": ("bad", "Lost"),
    "draining": ("waiting", "Draining"),
    "cordoned": ("quiet", "Cordoned"),
    "well": ("good", "Well"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One device as it is drawn; ``use`` and ``filled`` are 0 to 1, or None when unknown."""

    device: Device
    occupant: Occupant | None
    colour: int | None
    use: float | None
    filled: float | None
    power: float

    @property
    def status(self) -> str:
        if self.device.sick:
            return "sick"
        if self.occupant is None:
            return "free"
        return self.occupant.state if self.occupant.job else "held"

    @property
    def words(self) -> str:
        """What a screen reader says, and what hovering shows first."""
        if self.device.sick:
            return f"sick: {self.device.sick}"
        if self.occupant is None:
            return "free"
        if not self.occupant.job:
            return "used by another tenant"
        return f"{self.occupant.name} of {self.occupant.tenant}"

    @property
    def memory(self) -> str:
        if self.filled is None or not self.device.memory:
            return ""
        return f"{size(self.filled * self.device.memory)} of {size(self.device.memory)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One node with its tiles."""

    node: Node
    tiles: list[Tile]
    status: str = field(default="")

    @property
    def tone(self) -> str:
        return STATUS[self.status][0]

    @property
    def label(self) -> str:
        return STATUS[self.status][1]

    @property
    def held(self) -> int:
        return sum(tile.occupant is not None for tile in self.tiles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rack:
    """Nodes that stand together; ``places`` are its region, cluster and rack."""

    places: tuple[str, ...]
    rooms: list[Room]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The whole fleet with its totals."""

    racks: list[Rack]
    tenants: list[tuple[str, int]]
    """Slugs of the tenants that hold devices, with their colours."""

    @property
    def tiles(self) -> Iterator[Tile]:
        """Tiles of the devices that can be used: not sick, and on nodes that are well."""
        for rack in self.racks:
            for room in rack.rooms:
                if room.node.well:
                    yield from (tile for tile in room.tiles if not tile.device.sick)

    @property
    def devices(self) -> int:
        return sum(1 for _ in self.tiles)

    @property
    def held(self) -> int:
        return sum(tile.occupant is not None for tile in self.tiles)

    @property
    def used(self) -> float:
        """Devices' worth of computing that is done this second."""
        return sum(tile.use or 0.0 for tile in self.tiles)


class Standing(Protocol):
    """What the status of a node is told by."""

    @property
    def heard_at(self) -> datetime | None: ...
    @property
    def lost_at(self) -> datetime | None: ...
    @property
    def draining(self) -> bool: ...
    @property
    def cordoned(self) -> bool: ...


def status_of(node: Standing) -> str:
    """A node's status: the word that weighs most."""
    if node.heard_at is None:
        return "new"
    if node.lost_at is not None:
        return "lost"
    return "draining" if node.draining else "cordoned" if node.cordoned else "well"


def draw_floor(user: User, asked: QuerySet[Node]) -> Floor:
    """Answer some nodes as a user may see them, in four queries and one look at the broker."""
    nodes = list(asked.prefetch_related("devices"))
    colours = colour_tenants(user)
    occupants = find_occupants(colours, [node.pk for node in nodes])
    use = telemetry.latest(node.name for node in nodes)
    rooms = [
        Room(
            node=node,
            status=status_of(node),
            tiles=[
                lay_tile(device, occupants, colours, use.get(node.name, {}).get("devices", {}))
                for device in node.devices.all()
            ],
        )
        for node in nodes
    ]
    present = sorted({occupant.tenant for occupant in occupants.values() if occupant.job})
    return Floor(racks=group(rooms), tenants=[(slug, colours[slug]) for slug in present])


def lay_tile(
    device: Device,
    occupants: Mapping[tuple[int, str], Occupant],
    colours: Mapping[str, int],
    use: Mapping[str, Mapping[str, Any]],
) -> Tile:
    occupant = occupants.get((device.node_id, device.uid))
    now = use.get(device.uid, {})
    memory = now.get("memory")
    return Tile(
        device=device,
        occupant=occupant,
        colour=colours.get((occupant or HIDDEN).tenant),
        use=now.get("utilisation"),
        filled=memory / device.memory if memory is not None and device.memory else None,
        power=now.get("power", 0.0),
    )


def group(rooms: list[Room]) -> list[Rack]:
    """Put nodes that stand in one rack together; rows come in that order."""
    return [
        Rack(places=tuple(place for place in places if place), rooms=list(group_))
        for places, group_ in groupby(
            rooms, key=lambda room: (room.node.region, room.node.cluster, room.node.rack)
        )
    ]
