"""Fleets and jobs in a few words, for the planner's tests.

``fleet("n1 8", "n2 8 rack=r2")`` makes nodes; ``job("a", 2, on="n1")`` a running job that holds the
next free devices there; ``given(nodes, jobs)`` the snapshot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scheduler.planner import (
    Device,
    Job,
    Node,
    Phase,
    Plan,
    Seat,
    Snapshot,
    Tenant,
    Tier,
)

NOW = 1_000_000.0
TIERS = (
    Tier(id="basic", rank=0),
    Tier(id="standard", rank=1, promise=0.70),
    Tier(id="premium", rank=2, promise=0.95),
)


def node(id_: str, devices: int = 8, *, kind: str = "a100", **fields: Any) -> Node:
    """A node with so many devices."""
    sick = fields.pop("sick", 0)
    memory = fields.pop("device_memory", 0)
    found = tuple(
        Device(id=f"{id_}/{index}", kind=kind, memory=memory, sick=index < sick)
        for index in range(devices)
    )
    return Node(id=id_, devices=found, **fields)


def job(id_: str, devices: int = 1, **fields: Any) -> Job:
    """A job of single-device replicas that waits, or with ``on`` runs (see `given`)."""
    on = fields.pop("on", None)
    each = fields.pop("each", 1)
    fields.setdefault("tenant", "team")
    fields.setdefault("tier", "basic")
    fields.setdefault("submitted_at", NOW - 1000.0)
    fields.setdefault("waiting_since", fields["submitted_at"])
    found = Job(
        id=id_,
        phase=Phase.WAITING,
        replicas=devices // each,
        gpus_per_replica=each,
        **fields,
    )
    if on is None:
        return found
    seats = tuple(
        Seat(rank=rank, node=where, devices=()) for rank, where in enumerate(_spread(on, found))
    )
    started = fields.get("started_at", NOW - 10_000.0)
    return replace(found, phase=Phase.RUNNING, seats=seats, started_at=started)


def _spread(on: str, found: Job) -> list[str]:
    """``"n1"`` or ``"n1*4 n2*4"``: the node of every replica."""
    names: list[str] = []
    for word in on.split():
        name, _, count = word.partition("*")
        names += [name] * (int(count) if count else found.replicas)
    return names


def given(
    nodes: list[Node],
    jobs: list[Job],
    *,
    tenants: tuple[Tenant, ...] = (Tenant(id="team"), Tenant(id="other")),
    tiers: tuple[Tier, ...] = TIERS,
    **fields: Any,
) -> Snapshot:
    """The snapshot; running jobs sketched with ``on`` get the next free devices of their nodes."""
    free = {one.id: [device.id for device in one.devices] for one in nodes}
    for one in jobs:
        for seat in one.seats:
            for device in seat.devices:
                if device in free.get(seat.node, []):
                    free[seat.node].remove(device)
    seated = []
    for one in jobs:
        seats = []
        for seat in one.seats:
            devices = seat.devices
            if not devices:
                here = free[seat.node]
                devices = tuple(here[: one.gpus_per_replica])
                del here[: one.gpus_per_replica]
            seats.append(replace(seat, devices=devices))
        seated.append(replace(one, seats=tuple(seats)))
    return Snapshot(
        now=fields.pop("now", NOW),
        nodes=tuple(nodes),
        jobs=tuple(seated),
        tenants=tenants,
        tiers=tiers,
        **fields,
    )


def told(plan: Plan) -> dict[str, str]:
    """The plan in short: per job the decision, its nodes, its reason."""
    found = {}
    for decision in plan:
        words = [type(decision).__name__.lower()]
        seats = getattr(decision, "seats", ())
        if seats:
            counts: dict[str, int] = {}
            for place in sorted({(seat.node, device) for seat in seats for device in seat.devices}):
                counts[place[0]] = counts.get(place[0], 0) + 1
            words.append("+".join(f"{name}*{count}" for name, count in counts.items()))
        words.append(decision.why.reason.value)
        found[str(decision.job)] = " ".join(words)
    return found
