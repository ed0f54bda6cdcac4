"""Whole fleets by chance: nodes with every flag, jobs of every sort, quotas, policies.

They are drawn from a seed, and hypothesis draws the seed: a hundred times faster than drawing every
number, which is what pays when a hundred thousand fleets are to be tried.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from scheduler.planner import (
    PRESETS,
    Backfill,
    Job,
    Node,
    Phase,
    Policy,
    Quota,
    Remedy,
    Seat,
    Snapshot,
    Tenant,
)
from scheduler.planner.needs import sizes
from tests.planner.sketches import NOW, TIERS, job, node

KINDS = ("a100", "h100")
NAMES = ("default", "eager", "eager", "fifo", "fifo-easy", "sjf", "srtf", "las", "fair")


def some_nodes(dice: random.Random, most: int = 6) -> list[Node]:
    """A few nodes in racks and clusters; now and then one that is ill."""
    found = []
    for index in range(dice.randint(1, most)):
        odd = dice.randint(0, 12)
        found.append(
            node(
                f"n{index}",
                dice.choice([1, 2, 4, 4, 8]),
                kind=KINDS[odd == 1],
                rack=dice.choice(["r1", "r2"]),
                cluster="c2" if odd == 2 else "c1",
                partitions=frozenset({"blue"}) if odd in (3, 4) else frozenset(),
                cpus=dice.choice([0.0, 8.0]),
                cordoned=odd == 5,
                draining=odd == 6,
                lost=odd == 7 and index > 0,
                can_restore=odd != 8,
                can_run_together=odd != 9,
                sick=1 if odd == 4 else 0,
            )
        )
    return found


def wanting(dice: random.Random, id_: str) -> Job:
    """A waiting job."""
    each = dice.choice([1, 1, 1, 2, 4])
    replicas = dice.choice([1, 1, 1, 2, 2, 3, 4])
    odd = dice.randint(0, 11)
    return job(
        id_,
        replicas * each,
        each=each,
        tenant=dice.choice(["a", "a1", "b"]),
        tier=dice.choice(TIERS).id,
        submitted_at=NOW - dice.randint(1, 20) * 500,
        fewest_devices=each if odd in (1, 2, 3) else None,
        device_kind="a100" if odd in (4, 5) else "",
        partition="blue" if odd == 6 else "",
        cpus_per_replica=2.0 if odd in (7, 8) else 0.0,
        remedy=dice.choice([Remedy.TRANSPARENT] * 4 + [Remedy.PAUSE, Remedy.REQUEUE]),
        avoid_nodes=frozenset({"n0"}) if odd == 9 else frozenset(),
        has_image=odd == 10,
        at_stake_s=dice.choice([0.0, 500.0]),
        expected_s=dice.choice([None, 1000.0, 50_000.0]),
    )


def seat(wanted: Job, fleet: list[Node], taken: set[tuple[str, str]], first: int) -> Job | None:
    """The job running on free devices from node ``first`` on, at some legal size; or nowhere."""
    order = fleet[first:] + fleet[:first]
    kind = wanted.device_kind or order[0].devices[0].kind
    for size in sizes(wanted):
        groups: list[tuple[str, tuple[Any, ...]]] = []
        for one in order:
            free = [
                device.id
                for device in one.devices
                if (one.id, device.id) not in taken and not device.sick and device.kind == kind
            ]
            while len(free) >= size.each and len(groups) < size.groups:
                groups.append((one.id, tuple(free[: size.each])))
                free = free[size.each :]
        if len(groups) == size.groups:
            taken |= {(name, device) for name, devices in groups for device in devices}
            seats = tuple(
                Seat(
                    rank=rank,
                    node=groups[rank // size.share][0],
                    devices=groups[rank // size.share][1],
                )
                for rank in range(wanted.replicas)
            )
            return replace(wanted, phase=Phase.RUNNING, seats=seats, has_image=False)
    return None


def running(dice: random.Random, wanted: Job) -> Job:
    """What a running job may have behind it."""
    odd = dice.randint(0, 15)
    return replace(
        wanted,
        started_at=NOW - dice.choice([10.0, 1000.0, 50_000.0]),
        last_moved_at=NOW - 100.0 if odd == 1 else None,
        delivered=dice.choice([0.0, 900.0, 100_000.0]),
        entitled=dice.choice([0.0, 1000.0, 100_000.0]),
        move_asked=odd == 2,
        wanted_nodes=frozenset({"n1"}) if odd in (2, 3) else frozenset(),
        asked_devices=1 if odd == 4 else None,
        phase=Phase.MOVING if odd == 5 else Phase.RUNNING,
    )


def some_quotas(dice: random.Random) -> dict[str, Quota]:
    """A quota per kind, or none at all."""
    if dice.randint(0, 1):
        return {}
    return {
        kind: Quota(
            reserved=dice.randint(0, 8),
            borrow=dice.choice([None, 0, 4, 16]),
            lend=dice.choice([True, True, False]),
        )
        for kind in KINDS
    }


def a_snapshot(seed: int, most_nodes: int = 6, most_jobs: int = 14) -> Snapshot:
    """A fleet where every running job sits legally, and some wait."""
    dice = random.Random(seed)
    fleet = some_nodes(dice, most_nodes)
    taken: set[tuple[str, str]] = set()
    found = []
    for index in range(dice.randint(0, most_jobs)):
        wanted = wanting(dice, f"j{index}")
        if dice.randint(0, 2):
            seated = seat(wanted, fleet, taken, dice.randrange(len(fleet)))
            wanted = running(dice, seated) if seated is not None else wanted
        found.append(wanted)
    tenants = (
        Tenant(id="a", quotas=some_quotas(dice), usage=dice.choice([0.0, 1e6])),
        Tenant(id="a1", quotas=some_quotas(dice), parent="a"),
        Tenant(id="b", quotas=some_quotas(dice)),
    )
    return Snapshot(
        now=NOW,
        nodes=tuple(fleet),
        jobs=tuple(found),
        tenants=tenants,
        tiers=TIERS,
        moved_at=(NOW - 10.0,),
    )


def a_policy(seed: int) -> Policy:
    """One of the presets, with another budget and backfill."""
    dice = random.Random(seed)
    return replace(
        PRESETS[dice.choice(NAMES)],
        moves_per_hour=dice.choice([0, 2, 1000]),
        backfill=dice.choice([Backfill.SKIP, Backfill.SKIP, Backfill.EASY]),
    )


seeds = st.integers(0, 2**40)
snapshots = seeds.map(a_snapshot)
policies = seeds.map(a_policy)
