"""Keep the trail of what admins and managers changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.models import AuditEntry, User


def record(
    user: User,
    act: str,
    subject: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AuditEntry | None:
    """Write down a change, with only the values that differ; nothing where none does.

    An act without values (a token renewed, a member removed) is always written down.
    """
    old, new = dict(before or {}), dict(after or {})
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    if not changed and (old or new):
        return None
    return AuditEntry.objects.create(
        actor=user,
        act=act,
        subject=subject,
        before={key: old[key] for key in changed if key in old},
        after={key: new[key] for key in changed if key in new},
    )
