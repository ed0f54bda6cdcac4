"""Which node has how many devices in use, kept as running counts."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.planner import Node, NodeId, Seat


class DeviceHeldTwiceError(RuntimeError):
    """A plan put two jobs on one device: a fault of the planner that no measure may hide."""


class Occupancy:
    """Devices in use by node, the total, and how many idle ones lie on partly used nodes."""

    __slots__ = ("_size", "_used", "capacity", "idle_in_part", "used")

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._size = {node.id: len(node.devices) for node in nodes}
        self._used = dict.fromkeys(self._size, 0)
        self.capacity = sum(self._size.values())
        self.used = 0
        self.idle_in_part = 0
        """Idle devices whose node also has devices in use."""

    def take(self, seats: tuple[Seat, ...], count: int) -> None:
        """Count ``count`` devices as used, on the nodes of the seats where there are any."""
        self._add(seats, count, 1)

    def give(self, seats: tuple[Seat, ...], count: int) -> None:
        """Count them as idle again."""
        self._add(seats, count, -1)

    def set_away(self, node: NodeId, *, away: bool) -> None:
        """Let a node's devices leave the capacity, or come back."""
        self.capacity += -self._size[node] if away else self._size[node]

    def _add(self, seats: tuple[Seat, ...], count: int, sign: int) -> None:
        self.used += sign * count
        if not seats:
            return
        if len(seats) == 1:
            self._add_on(seats[0].node, sign * len(seats[0].devices))
            return
        by_node: dict[NodeId, set[str]] = {}
        for seat in seats:
            by_node.setdefault(seat.node, set()).update(seat.devices)
        for node, devices in by_node.items():
            self._add_on(node, sign * len(devices))

    def _add_on(self, node: NodeId, change: int) -> None:
        size, before = self._size[node], self._used[node]
        after = before + change
        self._used[node] = after
        self.idle_in_part += (size - after if after else 0) - (size - before if before else 0)

    def check(self) -> None:
        """Raise ``DeviceHeldTwiceError`` when a node has more in use than it has."""
        if self.used > sum(self._size.values()):
            raise DeviceHeldTwiceError(f"{self.used} devices in use")
        for node, used in self._used.items():
            if not 0 <= used <= self._size[node]:
                raise DeviceHeldTwiceError(f"{used} of {self._size[node]} devices of {node} in use")
