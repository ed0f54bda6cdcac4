"""Which nodes are away now, from the fleet's outages and from failures drawn by a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from scheduler.planner import Node, NodeId
from scheduler.simulator.clock import Clock, What
from scheduler.simulator.fleets import Absence, Fleet, Outage


class Absences:
    """Sets the outages on the clock and keeps the nodes as the planner sees them."""

    def __init__(self, fleet: Fleet, clock: Clock, seed: int) -> None:
        self.nodes: tuple[Node, ...] = fleet.nodes
        self._law = fleet.failures
        self._clock = clock
        self._start = clock.now
        self._outages: list[Outage] = []
        self._failing: set[int] = set()
        self._places = {node.id: place for place, node in enumerate(fleet.nodes)}
        self._away: Counter[tuple[NodeId, Absence]] = Counter()
        self._dice = {
            node.id: random.Random(f"{seed}/{node.id}") for node in fleet.nodes if self._law
        }
        for outage in fleet.outages:
            self._set(outage)
        for node in self._dice:
            self._draw(node)

    def begin(self, number: int) -> tuple[NodeId, bool]:
        """An outage begins: the node, and whether its jobs are lost."""
        outage = self._outages[number]
        self._away[outage.node, outage.absence] += 1
        self._clock.set(self._start + outage.until, What.BACK, number)
        self._show(outage.node)
        return outage.node, (
            outage.absence is Absence.LOST and self._away[outage.node, Absence.LOST] == 1
        )

    def end(self, number: int) -> tuple[NodeId, bool]:
        """An outage ends: the node, and whether it had been lost and is no more."""
        outage = self._outages[number]
        self._away[outage.node, outage.absence] -= 1
        self._show(outage.node)
        if number in self._failing:
            self._failing.discard(number)
            self._draw(outage.node)
        return outage.node, (
            outage.absence is Absence.LOST and not self._away[outage.node, Absence.LOST]
        )

    def _show(self, node: NodeId) -> None:
        place = self._places[node]
        changed = replace(
            self.nodes[place],
            lost=self._away[node, Absence.LOST] > 0,
            draining=self._away[node, Absence.DRAINING] > 0,
        )
        self.nodes = (*self.nodes[:place], changed, *self.nodes[place + 1 :])

    def _set(self, outage: Outage) -> None:
        self._clock.set(self._start + outage.at, What.AWAY, len(self._outages))
        self._outages.append(outage)

    def _draw(self, node: NodeId) -> None:
        """Draw the node's next failure and its repair."""
        if self._law is None:
            return
        die = self._dice[node]
        at = self._clock.now - self._start + die.expovariate(1 / self._law.mean_between_s)
        until = at + die.expovariate(1 / self._law.mean_repair_s)
        self._failing.add(len(self._outages))
        self._set(Outage(at=at, until=until, node=node))


def lasting(outages: Sequence[Outage]) -> float:
    """Seconds until the last of the outages is over; 0 when there is none."""
    return max((outage.until for outage in outages), default=0.0)
