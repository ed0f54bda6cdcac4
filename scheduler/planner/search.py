"""Who has to go so that a job fits: the fewest, and the cheapest of as few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import Protocol

from scheduler.planner.costs import loss
from scheduler.planner.draft import Draft
from scheduler.planner.fleet import Bin, Pool
from scheduler.planner.layers import Yielders, held_on
from scheduler.planner.ledger import Held
from scheduler.planner.needs import Need, Size, natural
from scheduler.planner.placement import bin_room
from scheduler.planner.reasons import Reason
from scheduler.planner.snapshot import JobId
from scheduler.planner.victims import Option

BINS_WEIGHED = 12
"""Bins whose victims are compared in a large fleet; all of them in one of up to 64 bins."""
EXACT = 14
"""With so few candidates for a gang all smaller sets are tried."""


Price = tuple[int, int, float, tuple[tuple[int, str], ...]]
"""How many go, the highest rank among them, device-seconds lost, their ids."""
Found = tuple[Price, list[Held]]


class Right(Protocol):
    """Who asks others to go, and by which right."""

    draft: Draft

    def right(self, held: Held) -> Reason | None: ...


class Search:
    """Looks for the fewest jobs that have to go for one size of one job."""

    def __init__(self, pusher: Right, need: Need, size: Size, index: Yielders) -> None:
        self.pusher = pusher
        self.draft = pusher.draft
        self.need = need
        self.size = size
        self.index = index
        self._prices: dict[JobId, Price] = {}

    def one_bin(self, pools: Sequence[Pool]) -> list[Held] | None:
        """The fewest victims on one node; first where a single one is enough."""
        wanted = self.size.devices
        small = sum(len(pool.bins) for pool in pools) <= 64
        best: Found | None = None
        weighed = 0
        for single in (True, False):
            for bin_ in self._bins(pools, wanted, single=single):
                found = self._fewest(bin_, wanted, best[0] if best else None)
                if found is not None:
                    best = found
                weighed += 1
                if not small and weighed >= (BINS_WEIGHED if best else 16 * BINS_WEIGHED):
                    return best[1] if best else None
            if best is not None:
                break
        return best[1] if best else None

    def alternatives(self, pools: Sequence[Pool], most: int) -> Iterator[list[Held]]:
        """Several ways, one node each, likely ones first; then that over several nodes."""
        wanted, tried = self.size.devices, 0
        bins = self._bins(pools, wanted, single=True) + self._bins(pools, wanted, single=False)
        seen: set[Bin] = set()
        for bin_ in sorted(bins, key=lambda one: -one.count):
            if bin_ in seen or tried >= most:
                continue
            seen.add(bin_)
            found = self._fewest(bin_, wanted)
            if found is not None:
                tried += 1
                yield found[1]
        several = self.several_bins(pools)
        if several:
            yield several

    def _bins(self, pools: Sequence[Pool], wanted: int, *, single: bool) -> list[Bin]:
        """Bins where it could work: those first where the least would be left over."""
        found: list[Bin] = []
        most = 64 if sum(len(pool.bins) for pool in pools) <= 64 else 16 * BINS_WEIGHED
        for waste in range(max((pool.size for pool in pools), default=0) + 1):
            for pool in pools:
                if wanted > pool.size:
                    continue
                masks = self.index.holding(pool)
                allowed = pool.allowed(self.need)
                for free in range(wanted) if single else ():
                    held = wanted - free + waste
                    if held <= pool.size:
                        bins = pool.by_free[free] & allowed & masks[held]
                        found += _some(pool, bins, most - len(found))
                if not single and waste == 0:
                    touched = 0
                    for mask in masks:
                        touched |= mask
                    found += _some(pool, touched & allowed, most - len(found))
            if len(found) >= most:
                break
        return found

    def _fewest(self, bin_: Bin, wanted: int, known: Price | None = None) -> Found | None:
        """The smallest set on a bin that leaves ``wanted`` devices free, the cheapest of those.

        With ``known`` only one that is better than that.
        """
        here, mask = self.index.on(bin_), bin_.free
        for held in here:
            mask |= held_on(held, bin_)
        if mask.bit_count() < wanted:
            return None
        right = self.pusher.right
        able, mask = [], bin_.free
        for held in here:
            if right(held) is not None:
                part = held_on(held, bin_)
                able.append((-part.bit_count(), self._price_of(held), held))
                mask |= part
        if mask.bit_count() < wanted:
            return None
        able.sort(key=_by_devices)
        candidates = [held for _, _, held in able[:12]]
        for count in range(1, len(candidates) + 1):
            if known is not None and count > known[0]:
                return None
            best: Found | None = None
            for chosen in combinations(candidates, count):
                price = self._price(chosen)
                least = known if best is None else best[0]
                if least is not None and not price < least:
                    continue
                if self._room(bin_, chosen) >= self.size.groups:
                    best = (price, list(chosen))
            if best is not None:
                return best
        return None

    def _room(self, bin_: Bin, leaving: Sequence[Held]) -> int:
        """Groups that fit on a bin once these have left."""
        mask = bin_.free
        milli = memory = 0
        for held in leaving:
            for part in held.parts:
                if part.bin is bin_:
                    mask |= part.mask
                if part.bin.host is bin_.host:
                    milli += part.milli
                    memory += part.memory
        if len(bin_.jobs) > len(leaving):
            # A device may have two holders, and is free when both have left.
            leavers = [held.job.id for held in leaving]
            for id_, held_too in bin_.jobs.items():
                if held_too & mask and id_ not in leavers:
                    mask &= ~held_too
        host = bin_.host
        host.milli += milli
        host.memory += memory
        room = bin_room(bin_, (mask & bin_.all).bit_count(), self.need, self.size)
        host.milli -= milli
        host.memory -= memory
        return room

    def _price_of(self, held: Held) -> Price:
        """How many go, the highest tier among them, what is lost by it, and who they are."""
        price = self._prices.get(held.job.id)
        if price is None:
            draft, job = self.draft, held.job
            lost = loss(job, draft.policy, draft.now)
            price = (1, draft.tier(job).rank, lost, (natural(job.id),))
            self._prices[job.id] = price
        return price

    def _price(self, chosen: Sequence[Held]) -> Price:
        if len(chosen) == 1:
            return self._price_of(chosen[0])
        prices = [self._price_of(held) for held in chosen]
        return (
            len(chosen),
            max([rank for _, rank, _, _ in prices]),
            sum([lost for _, _, lost, _ in prices]),
            tuple(sorted([ids[0] for _, _, _, ids in prices])),
        )

    def several_bins(self, pools: Sequence[Pool]) -> list[Held] | None:
        """Victims for a gang: in one cluster if that works, else in one region."""
        if self.size.groups == 1:
            return None
        clusters = [[pool] for pool in pools if self._promising([pool])]
        clusters.sort(key=lambda group: -self._room_now(group))
        best: list[Held] | None = None
        for group in clusters[:4]:
            found = self._gather(group)
            if found and (best is None or len(found) < len(best)):
                best = found
        if best is not None:
            return best
        regions: dict[tuple[str, str], list[Pool]] = {}
        for pool in pools:
            regions.setdefault((pool.region, pool.kind), []).append(pool)
        for group in regions.values():
            if len(group) > 1 and self._promising(group) and (found := self._gather(group)):
                return found
        return None

    def _promising(self, group: list[Pool]) -> bool:
        return sum(pool.free + self.index.most(pool) for pool in group) >= self.size.devices

    def _mask(self, pool: Pool) -> int:
        return pool.allowed(self.need) & pool.joining

    def _room_now(self, group: list[Pool]) -> int:
        return sum(
            bin_room(bin_, bin_.count, self.need, self.size)
            for pool in group
            for bin_ in pool.each(self._mask(pool) & ~pool.by_free[0])
        )

    def _gather(self, group: list[Pool]) -> list[Held] | None:
        """Take the options that give most per victim until it fits, then drop the needless."""
        masks = {pool: self._mask(pool) for pool in group}
        short = self.size.groups - self._room_now(group)
        heap = [
            (option.key, index, option)
            for index, option in enumerate(
                option for pool in group for option in self._options(pool)
            )
        ]
        heapify(heap)
        chosen: dict[JobId, Held] = {}
        gained = 0
        while heap and gained < short:
            key, index, option = heappop(heap)
            fresh = [held for held in option.victims if held.job.id not in chosen]
            if not fresh or any(self.pusher.right(held) is None for held in fresh):
                continue
            gain = self._gain([*chosen.values(), *fresh], masks) - gained
            if gain <= 0:
                continue
            if -gain / len(fresh) > key[0]:
                renewed = Option(fresh, gain, self.draft)
                heappush(heap, (renewed.key, index, renewed))
                continue
            chosen.update((held.job.id, held) for held in fresh)
            gained += gain
        if gained < short:
            return None
        return self._fewer(self._needed(list(chosen.values()), masks, short), group, masks, short)

    def _options(self, pool: Pool) -> list[Option]:
        """Every job that alone gives room, and per bin the set that gives the next group."""
        known = self.index.options.get((pool, self.size.each))
        if known is not None and not self.need.milli and not self.need.memory:
            return known
        masks = {pool: pool.usable & pool.joining}
        found: list[Option] = []
        for held in self.index.within(pool):
            gain = self._gain([held], masks)
            if gain:
                found.append(Option([held], gain, self.draft))
        for bin_ in pool.each(masks[pool]):
            several = self._together(bin_)
            if several:
                found.append(several)
        if not self.need.milli and not self.need.memory:
            self.index.options[pool, self.size.each] = found
        return found

    def _together(self, bin_: Bin) -> Option | None:
        """The smallest set of at least two on one bin that gives one more group."""
        here = self.index.on(bin_)
        if len(here) < 2:
            return None
        before = self._room(bin_, ())
        ordered = sorted(
            here, key=lambda held: (-held_on(held, bin_).bit_count(), natural(held.job.id))
        )
        for count in range(2, len(ordered) + 1):
            gain = self._room(bin_, ordered[:count]) - before
            if gain > 0:
                return Option(ordered[:count], gain, self.draft)
        return None

    def _gain(self, leaving: Sequence[Held], masks: dict[Pool, int]) -> int:
        """Groups that fit more once these have left."""
        touched: dict[Bin, list[Held]] = {}
        for held in leaving:
            for part in held.parts:
                if masks.get(part.bin.pool, 0) & part.bin.bit:
                    touched.setdefault(part.bin, []).append(held)
        return sum(
            self._room(bin_, there) - bin_room(bin_, bin_.count, self.need, self.size)
            for bin_, there in touched.items()
        )

    def _needed(self, chosen: list[Held], masks: dict[Pool, int], short: int) -> list[Held]:
        """Put back, the dearest first, whoever is not needed."""
        there: dict[Bin, list[Held]] = {}
        for held in chosen:
            for part in held.parts:
                if masks.get(part.bin.pool, 0) & part.bin.bit:
                    there.setdefault(part.bin, []).append(held)
        slack = self._gain(chosen, masks) - short
        kept = []
        for held in sorted(chosen, key=self._price_of, reverse=True):
            bins = [part.bin for part in held.parts if part.bin in there]
            lost = 0
            for bin_ in bins:
                rest = [other for other in there[bin_] if other is not held]
                lost += self._room(bin_, there[bin_]) - self._room(bin_, rest)
            if lost > slack:
                kept.append(held)
                continue
            slack -= lost
            for bin_ in bins:
                there[bin_].remove(held)
        return kept

    def _fewer(
        self, chosen: list[Held], group: list[Pool], masks: dict[Pool, int], short: int
    ) -> list[Held]:
        """With few candidates: a smaller set, or one as small and cheaper, if there is one."""
        if len(chosen) < 2 or sum(self.index.count(pool) for pool in group) > 4 * EXACT:
            return chosen
        near = {one.job.id: one for pool in group for one in self.index.within(pool)}
        able = [held for held in near.values() if self.pusher.right(held) is not None]
        if len(able) > EXACT:
            return chosen
        able.sort(key=lambda held: natural(held.job.id))
        for count in range(1, len(chosen) + 1):
            fitting = [
                sorted(some, key=lambda held: natural(held.job.id))
                for some in combinations(able, count)
                if self._gain(some, masks) >= short
            ]
            if fitting:
                return min(fitting, key=self._price)
        return chosen


def _by_devices(one: tuple[int, Price, Held]) -> tuple[int, Price]:
    return one[:2]


def _some(pool: Pool, mask: int, most: int) -> list[Bin]:
    """At most so many bins of a bit set."""
    found: list[Bin] = []
    while mask and len(found) < most:
        low = mask & -mask
        found.append(pool.bins[low.bit_length() - 1])
        mask ^= low
    return found
