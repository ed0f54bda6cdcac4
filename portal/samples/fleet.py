"""Nodes, tenants and people of the sample fleet."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.actions.tokens import digest
from portal.choices import Role
from portal.models import Device, Membership, Node, Partition, Quota, Tenant, Tier, User

GIB = 2**30
DEVICES = 8
TIERS = (
    ("premium", "Premium", 30, 0.95, 900),
    ("standard", "Standard", 20, 0.70, 1800),
    ("basic", "Basic", 10, 0.0, None),
)
TREE = (
    ("research", "Research", "", 0, None),
    ("vision", "Vision", "research", 14, None),
    ("language", "Language", "research", 16, 8),
    ("speech", "Speech", "research", 6, 4),
    ("products", "Products", "", 0, 0),
    ("search", "Search", "products", 8, 4),
    ("robotics", "Robotics", "products", 4, None),
)
PEOPLE = (("mira", "vision"), ("ana", "vision"), ("ben", "language"), ("lea", "language"),
          ("noor", "speech"), ("tom", "search"), ("kai", "robotics"))  # fmt: skip
ABLE = {"able": True, "reason": ""}


@dataclass(frozen=True, slots=True)
class Sample:
    """What the sample's jobs are laid upon."""

    tenants: dict[str, Tenant]
    tiers: dict[str, Tier]
    people: dict[str, User]
    nodes: list[Node]


def lay_fleet(now: datetime, admin: User) -> Sample:
    """Make everything but jobs."""
    tiers = {slug: lay_tier(slug, *rest) for slug, *rest in TIERS}  # type: ignore[arg-type]
    tenants: dict[str, Tenant] = {}
    for slug, title, parent, reserved, borrow in TREE:
        tenant, _ = Tenant.objects.get_or_create(
            slug=slug, defaults={"title": title, "parent": tenants.get(parent)}
        )
        Quota.objects.update_or_create(
            tenant=tenant, device_kind="", defaults={"reserved": reserved, "borrow": borrow}
        )
        tenants[slug] = tenant
    people = {name: lay_person(name, tenants[tenant]) for name, tenant in PEOPLE}
    nodes = [lay_node(number, now) for number in range(1, 7)]
    big = Partition.objects.create(slug="interconnect", title="Fast interconnect")
    big.nodes.set(nodes[:3])
    return Sample(tenants=tenants, tiers=tiers, people=people | {"admin": admin}, nodes=nodes)


def lay_tier(slug: str, title: str, rank: int, promise: float, every_s: int | None) -> Tier:
    values = {"title": title, "rank": rank, "promise": promise, "checkpoint_every_s": every_s}
    return Tier.objects.update_or_create(slug=slug, defaults=values)[0]


def lay_person(name: str, tenant: Tenant) -> User:
    user, _ = User.objects.get_or_create(username=name)
    role = Role.MANAGER if name in {"mira", "ben"} else Role.RESEARCHER
    Membership.objects.get_or_create(user=user, tenant=tenant, defaults={"role": role})
    return user


def lay_node(number: int, now: datetime) -> Node:
    """One machine of eight H100; the fifth is being drained, the second has a sick device."""
    names = ("run", "pause", "checkpoint", "migrate", "device_checkpoint", "network", "profile")
    node = Node.objects.create(
        name=f"node-{number}",
        token_digest=digest(secrets.token_urlsafe(32)),
        region="eu-north",
        cluster="h100-a",
        rack=f"rack-{(number + 2) // 3}",
        draining=number == 5,
        note="New network cards on Monday" if number == 5 else "",
        address=f"10.20.0.{number}",
        agent="0.1.0",
        driver="container",
        abilities=dict.fromkeys(names, ABLE),
        cpus=96,
        memory=1024 * GIB,
        heard_at=now,
        connected=True,
    )
    if number == 6:
        why = "the driver is older than 570; device memory can't be checkpointed"
        node.abilities["device_checkpoint"] = {"able": False, "reason": why}
        node.save(update_fields=["abilities"])
    Device.objects.bulk_create(
        Device(
            node=node,
            uid=f"GPU-{number}{place}",
            index=place,
            kind="H100",
            memory=80 * GIB,
            sick="uncorrectable memory errors" if (number, place) == (2, 6) else "",
        )
        for place in range(DEVICES)
    )
    return node


def long_ago(now: datetime, minutes: float) -> datetime:
    return now - timedelta(minutes=minutes)
