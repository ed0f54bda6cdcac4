"""Which devices: the tightest place, on one node before one rack, one cluster, one region."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduler.planner.fleet import Bin, Pool
from scheduler.planner.ledger import Part
from scheduler.planner.needs import Need, Size
from scheduler.planner.snapshot import Job, Seat

Spot = tuple[Bin, int]
"""A bin and how many groups of a job go there."""

NOT_BARRED: Mapping[Pool, int] = {}


def find(
    pools: Sequence[Pool], need: Need, size: Size, barred: Mapping[Pool, int] = NOT_BARRED
) -> list[Spot] | None:
    """Room for all groups at once, or ``None``. ``barred`` are bins to leave out.

    Complete: where it finds nothing, there is no room within one region.
    """
    spot = _one_bin(pools, need, size, barred)
    if spot is not None:
        return [(spot, size.groups)]
    if size.groups == 1:
        return None
    return _several(pools, need, size, barred)


def seated(job: Job, size: Size, spots: Iterable[Spot]) -> tuple[tuple[Seat, ...], list[Part]]:
    """The seats of every replica on free devices of these bins, and what they hold there."""
    seats: list[Seat] = []
    parts: list[Part] = []
    each, share = size.each, size.share
    milli, memory = round(job.cpus_per_replica * 1000), job.memory_per_replica
    rank = 0
    for bin_, groups in spots:
        free, node, taken = bin_.free, bin_.host.node.id, 0
        for _ in range(groups):
            mask = lowest(free, each)
            free ^= mask
            taken |= mask
            devices = bin_.devices(mask)
            for _ in range(share):
                seats.append(Seat(rank=rank, node=node, devices=devices))
                rank += 1
        replicas = groups * share
        parts.append(Part(bin_, taken, milli * replicas, memory * replicas))
    return tuple(seats), parts


def lowest(mask: int, count: int) -> int:
    """The ``count`` lowest bits of ``mask``."""
    if mask.bit_count() == count:
        return mask
    taken = 0
    for _ in range(count):
        low = mask & -mask
        taken |= low
        mask ^= low
    return taken


def bin_room(bin_: Bin, free: int, need: Need, size: Size) -> int:
    """Groups that fit on a bin with ``free`` free devices, its host's CPUs and memory counted."""
    room = free // size.each
    if need.milli:
        room = min(room, max(0, bin_.host.milli) // (need.milli * size.share))
    if need.memory:
        room = min(room, max(0, bin_.host.memory) // (need.memory * size.share))
    return room


def pool_room(pool: Pool, mask: int, need: Need, size: Size) -> int:
    """Groups that fit on these bins of a pool."""
    each, room = size.each, 0
    by_free = pool.by_free
    for free in range(each, len(by_free)):
        bins = by_free[free] & mask
        if bins:
            room += bins.bit_count() * (free // each)
    if room and (need.milli or need.memory):
        able = mask & ~_below(pool, each)
        return sum(bin_room(bin_, bin_.count, need, size) for bin_ in pool.each(able))
    return room


def free_on(where: Mapping[Pool, int]) -> int:
    """Free devices on some bins."""
    return sum(
        free * (bins & mask).bit_count()
        for pool, mask in where.items()
        for free, bins in enumerate(pool.by_free)
    )


def _below(pool: Pool, each: int) -> int:
    mask = 0
    for bins in pool.by_free[:each]:
        mask |= bins
    return mask


def _one_bin(
    pools: Sequence[Pool], need: Need, size: Size, barred: Mapping[Pool, int]
) -> Bin | None:
    """The fullest bin that holds the whole job."""
    wanted, best = size.devices, None
    waste = 1 << 30
    for pool in pools:
        if wanted > pool.size:
            continue
        allowed = pool.allowed(need)
        if barred:
            allowed &= ~barred.get(pool, 0)
        for free in range(wanted, min(pool.size, wanted + waste - 1) + 1):
            bins = pool.by_free[free] & allowed
            if bins:
                found = _first(pool, bins, need, size)
                if found is not None:
                    best, waste = found, free - wanted
                    break
        if waste == 0:
            break
    return best


def _first(pool: Pool, bins: int, need: Need, size: Size) -> Bin | None:
    if not need.milli and not need.memory:
        return pool.bins[(bins & -bins).bit_length() - 1]
    for bin_ in pool.each(bins):
        if bin_room(bin_, bin_.count, need, size) >= size.groups:
            return bin_
    return None


def _several(
    pools: Sequence[Pool], need: Need, size: Size, barred: Mapping[Pool, int]
) -> list[Spot] | None:
    """One rack if there is one with room, else one cluster, else one region; the tightest."""
    rooms: list[tuple[Pool, int, int]] = []
    for pool in pools:
        mask = pool.allowed(need) & pool.joining & ~barred.get(pool, 0)
        room = pool_room(pool, mask, need, size)
        if room:
            rooms.append((pool, mask, room))
    enough = [entry for entry in rooms if entry[2] >= size.groups]
    if not enough:
        return _region(rooms, need, size)
    best: tuple[int, Pool, int] | None = None
    for pool, mask, _ in enough:
        for rack in pool.racks:
            room = pool_room(pool, mask & rack, need, size)
            if room >= size.groups and (best is None or room < best[0]):
                best = (room, pool, mask & rack)
    if best is not None:
        return fill(best[1], best[2], need, size, size.groups)
    pool, mask, _ = min(enough, key=lambda entry: entry[2])
    return _racks(pool, mask, need, size, size.groups)


def _racks(pool: Pool, mask: int, need: Need, size: Size, groups: int) -> list[Spot]:
    """Fill the racks with most room first, and the last one as tightly as possible."""
    if len(pool.racks) == 1:
        return fill(pool, mask, need, size, groups)
    rooms = [(pool_room(pool, mask & rack, need, size), rack) for rack in pool.racks]
    rooms.sort(key=lambda entry: -entry[0])
    spots: list[Spot] = []
    while groups:
        room, rack = rooms[0]
        if room >= groups:
            room, rack = min((entry for entry in rooms if entry[0] >= groups), key=lambda e: e[0])
        else:
            rooms.pop(0)
        taken = min(room, groups)
        spots += fill(pool, mask & rack, need, size, taken)
        groups -= taken
    return spots


def _region(rooms: list[tuple[Pool, int, int]], need: Need, size: Size) -> list[Spot] | None:
    """Several clusters of one region, and one device kind."""
    regions: dict[tuple[str, str], list[tuple[Pool, int, int]]] = {}
    for entry in rooms:
        regions.setdefault((entry[0].region, entry[0].kind), []).append(entry)
    for found in regions.values():
        if sum(room for _, _, room in found) < size.groups:
            continue
        found.sort(key=lambda entry: -entry[2])
        spots: list[Spot] = []
        left = size.groups
        for pool, mask, room in found:
            taken = min(room, left)
            spots += _racks(pool, mask, need, size, taken)
            left -= taken
            if not left:
                return spots
    return None


def fill(pool: Pool, mask: int, need: Need, size: Size, groups: int) -> list[Spot]:
    """Seats for ``groups`` on the emptiest bins of ``mask``, the remainder on the tightest one.

    There must be room for them.
    """
    by_free, hosted = pool.by_free, need.milli or need.memory
    tiers: list[tuple[int, list[Bin]]] = []
    for free in range(pool.size, size.each - 1, -1):
        bins = by_free[free] & mask
        if bins and not hosted:
            tiers.append((free // size.each, list(pool.each(bins))))
        elif bins:
            hosting = [(bin_room(bin_, free, need, size), [bin_]) for bin_ in pool.each(bins)]
            tiers += [tier for tier in hosting if tier[0]]
    tiers.sort(key=lambda tier: -tier[0])
    spots: list[Spot] = []
    for index, (room, found) in enumerate(tiers):
        for position, bin_ in enumerate(found):
            if groups <= room:
                spots.append((_tightest(tiers, index, position, groups), groups))
                return spots
            spots.append((bin_, room))
            groups -= room
    return spots


def _tightest(tiers: list[tuple[int, list[Bin]]], index: int, position: int, groups: int) -> Bin:
    """The bin with the least room that still holds ``groups``, among those not yet used."""
    best = tiers[index][1][position]
    for room, found in tiers[index + 1 :]:
        if room < groups:
            break
        best = found[0]
    return best
