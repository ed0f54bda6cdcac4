"""Running jobs by where and how much they hold, one layer a tier: where room could be made.

Kept from cycle to cycle, and exact: what is in a layer depends on the facts, not on their history.
"""

from __future__ import annotations

from typing import Any

from scheduler.planner.fleet import Bin, Pool
from scheduler.planner.ledger import Held
from scheduler.planner.snapshot import JobId


class Layer:
    """Some running jobs, indexed by bin, by pool, and by the devices they hold on a bin."""

    __slots__ = ("by_bin", "by_kind", "by_pool", "devices", "holding")

    def __init__(self) -> None:
        self.by_bin: dict[Bin, dict[JobId, Held]] = {}
        self.by_pool: dict[Pool, dict[JobId, Held]] = {}
        self.holding: dict[Pool, list[int]] = {}
        """Per number of devices: the bins where one job holds just so many."""
        self.devices: dict[Pool, int] = {}
        """Devices held in all."""
        self.by_kind: dict[str, int] = {}
        """The same by device kind."""

    def add(self, held: Held) -> None:
        """Take in a job."""
        id_ = held.job.id
        for part in held.parts:
            bin_ = part.bin
            pool = bin_.pool
            if pool not in self.holding:
                self.holding[pool] = [0] * (pool.size + 1)
                self.by_pool[pool] = {}
                self.devices[pool] = 0
            count = part.mask.bit_count()
            if id_ not in self.by_bin.get(bin_, ()):
                self.devices[pool] += count
                self.by_kind[pool.kind] = self.by_kind.get(pool.kind, 0) + count
            self.holding[pool][count] |= bin_.bit
            self.by_pool[pool][id_] = held
            found = self.by_bin.get(bin_)
            if found is None:
                self.by_bin[bin_] = {id_: held}
            else:
                found[id_] = held

    def remove(self, held: Held) -> None:
        """Leave out a job; nothing happens if it is not here."""
        id_ = held.job.id
        for part in held.parts:
            bin_ = part.bin
            here = self.by_bin.get(bin_)
            if here is None or here.pop(id_, None) is None:
                continue
            pool, count = bin_.pool, part.mask.bit_count()
            self.devices[pool] -= count
            self.by_kind[pool.kind] -= count
            self.by_pool[pool].pop(id_, None)
            if not here:
                del self.by_bin[bin_]
            if not any(held_on(one, bin_).bit_count() == count for one in here.values()):
                self.holding[pool][count] &= ~bin_.bit

    def count(self, kinds: tuple[str, ...]) -> int:
        """Devices of these kinds that its jobs hold."""
        return sum([self.by_kind.get(kind, 0) for kind in kinds])


def held_on(held: Held, bin_: Bin) -> int:
    """The devices that a job holds on a bin."""
    for part in held.parts:
        if part.bin is bin_:
            return part.mask
    return 0


class Yielders:
    """Several layers as one: all whom someone of a certain standing might ask to go."""

    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers
        self._holding: dict[Pool, list[int]] = {}
        self.options: dict[tuple[Pool, int], list[Any]] = {}
        """What was worked out about gangs in this cycle."""

    def __bool__(self) -> bool:
        return any(layer.by_bin for layer in self.layers)

    def holding(self, pool: Pool) -> list[int]:
        """Per number of devices: the bins where one of them holds just so many."""
        masks = self._holding.get(pool)
        if masks is None:
            masks = [0] * (pool.size + 1)
            for layer in self.layers:
                for count, mask in enumerate(layer.holding.get(pool, ())):
                    masks[count] |= mask
            self._holding[pool] = masks
        return masks

    def most(self, pool: Pool) -> int:
        """Devices of a pool that they hold."""
        return sum(layer.devices.get(pool, 0) for layer in self.layers)

    def count(self, pool: Pool) -> int:
        """How many of them are in a pool."""
        return sum(len(layer.by_pool.get(pool, ())) for layer in self.layers)

    def on(self, bin_: Bin) -> list[Held]:
        """Those on a bin."""
        found: list[Held] = []
        for layer in self.layers:
            here = layer.by_bin.get(bin_)
            if here is not None:
                found += here.values()
        return found

    def within(self, pool: Pool) -> list[Held]:
        """Those in a pool."""
        found: list[Held] = []
        for layer in self.layers:
            found += layer.by_pool.get(pool, {}).values()
        return found
