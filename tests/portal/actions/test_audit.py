"""The trail of changes."""

from __future__ import annotations

from portal.actions.audit import record
from portal.actions.tenants import set_quota
from portal.models import AuditEntry, Tenant, User


def test_only_what_differs_is_written_down(root: User) -> None:
    entry = record(root, "changed", "thing", {"a": 1, "b": 2}, {"a": 1, "b": 3})
    assert entry is not None
    assert (entry.before, entry.after) == ({"b": 2}, {"b": 3})


def test_a_change_that_changes_nothing_leaves_no_trace(root: User, vision: Tenant) -> None:
    set_quota(root, vision, reserved=8)
    assert not AuditEntry.objects.exists()


def test_an_act_without_values_is_always_written_down(root: User) -> None:
    assert record(root, "token renewed", "node a") is not None


def test_the_trail_outlives_the_actor(root: User) -> None:
    entry = record(root, "token renewed", "node a")
    assert entry is not None
    root.delete()
    entry.refresh_from_db()
    assert entry.actor is None
