"""The first rows: made once, never again, and told once."""

from __future__ import annotations

import pytest

from portal.actions.nodes import find_node
from portal.actions.seeding import seed
from portal.models import Membership, Node, Quota, Tenant, Tier, User

pytestmark = pytest.mark.django_db


def test_a_new_installation_has_tiers_tenants_people_and_nodes() -> None:
    seeded = seed(["node-a", "node-b"])

    assert list(Tier.objects.values_list("slug", "rank", "promise")) == [
        ("premium", 30, 0.95),
        ("standard", 20, 0.70),
        ("basic", 10, 0.0),
    ]
    members = Membership.objects.values_list("user__username", "tenant__slug", "role")
    assert sorted(members) == [
        ("ana", "vision", "researcher"),
        ("ben", "language", "researcher"),
    ]
    assert set(seeded.accounts) == {"admin", "ana", "ben"}
    for name, password in seeded.accounts.items():
        assert User.objects.get(username=name).check_password(password)
    assert User.objects.get(username="admin").is_admin
    for name, token in seeded.node_tokens.items():
        found = find_node(token)
        assert found is not None
        assert found.name == name
    assert Quota.objects.count() == 2


def test_done_again_it_adds_and_tells_nothing() -> None:
    seed(["node-a"])
    Tier.objects.filter(slug="basic").update(title="Mine")
    Tenant.objects.filter(slug="language").update(title="Mine")
    passwords = list(User.objects.values_list("password", flat=True))

    again = seed(["node-a"])

    assert (dict(again.accounts), dict(again.node_tokens)) == ({}, {})
    assert Tier.objects.get(slug="basic").title == "Mine"
    assert list(User.objects.values_list("password", flat=True)) == passwords


def test_a_node_that_came_later_is_added() -> None:
    seed(["node-a"])
    assert set(seed(["node-a", "node-b"]).node_tokens) == {"node-b"}
    assert Node.objects.count() == 2


def test_without_passwords_nobody_can_log_in() -> None:
    assert seed(passwords=False).accounts == {}
    assert not User.objects.get(username="ana").has_usable_password()
