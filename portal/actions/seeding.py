"""Lay the first rows: tiers, two tenants with a researcher each, an admin, and local nodes."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from portal.actions.nodes import new_secret
from portal.actions.tokens import digest
from portal.choices import Role
from portal.models import Membership, Node, Quota, Settings, Tenant, Tier, User

TIERS: Mapping[str, Mapping[str, Any]] = {
    "premium": {"title": "Premium", "rank": 30, "promise": 0.95},
    "standard": {"title": "Standard", "rank": 20, "promise": 0.70},
    "basic": {"title": "Basic", "rank": 10, "promise": 0.0},
}
TENANTS = {"vision": ("Vision", "ana"), "language": ("Language", "ben")}
RESERVED = 2
"""Devices each tenant can count on; beyond them they borrow what the other leaves idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    """What was made now and can't be read again: passwords by account, tokens by node."""

    accounts: Mapping[str, str] = field(default_factory=dict)
    node_tokens: Mapping[str, str] = field(default_factory=dict)


def seed(nodes: Sequence[str] = (), *, passwords: bool = True) -> Seeded:
    """Make what a new installation begins with; done again, it adds only nodes that are new.

    What admins changed or removed since the first time stays so. Without ``passwords`` nobody can
    log in yet, which is quicker.
    """
    with transaction.atomic():
        accounts = {} if User.objects.exists() else lay_first_rows(passwords=passwords)
        there = set(Node.objects.filter(name__in=nodes).values_list("name", flat=True))
        tokens = {name: new_secret() for name in nodes if name not in there}
        Node.objects.bulk_create(
            Node(name=name, token_digest=digest(token), region="local", cluster="local")
            for name, token in tokens.items()
        )
    return Seeded(accounts=accounts, node_tokens=tokens)


def lay_first_rows(*, passwords: bool) -> dict[str, str]:
    """Make tiers, tenants and accounts; answer the passwords."""
    Settings.objects.get_or_create(id=1)
    for slug, fields in TIERS.items():
        Tier.objects.get_or_create(slug=slug, defaults=fields)
    known: dict[str, str] = {}
    make_account("admin", known, passwords=passwords, is_staff=True)
    for slug, (title, researcher) in TENANTS.items():
        tenant, _ = Tenant.objects.get_or_create(slug=slug, defaults={"title": title})
        Quota.objects.get_or_create(tenant=tenant, defaults={"reserved": RESERVED, "borrow": None})
        user = make_account(researcher, known, passwords=passwords)
        Membership.objects.create(user=user, tenant=tenant, role=Role.RESEARCHER)
    return known


def make_account(
    username: str, known: dict[str, str], *, passwords: bool, is_staff: bool = False
) -> User:
    user = User(username=username, is_staff=is_staff)
    if passwords:
        known[username] = secrets.token_urlsafe(12)
        user.set_password(known[username])
    else:
        user.set_unusable_password()
    user.save()
    return user
