"""Choose the planner's policy for the fleet; admins only."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db import transaction

from portal import events
from portal.access import require_admin
from portal.actions.audit import record
from portal.actions.homes import call_all_back
from portal.models import Settings, User
from portal.refusals import Refused
from scheduler.planner import PRESETS, Policy, Sharing

CHOSEN = tuple(
    field.name
    for field in dataclasses.fields(Policy)
    if isinstance(getattr(Policy(), field.name), bool | int | float | Sharing)
    and field.name not in {"pool", "explain"}
)
"""Switches and numbers that admins may set; how to order and push comes with a preset."""


def live_presets() -> list[str]:
    """Names of the presets that a real fleet can be run by."""
    return [name for name, policy in PRESETS.items() if not policy.pool]


def environment_policy(name: str = "") -> Policy:
    """A preset, without a name the environment's, with what else the environment says."""
    preset = PRESETS.get(name or settings.POLICY, PRESETS["default"])
    return replace(preset, profiling=settings.PROFILING, sharing=_sharing(settings.SHARING))


def policy_in_force() -> Policy:
    """The policy that the fleet is run by: what admins chose, else the environment's."""
    row = Settings.objects.filter(pk=1).first() or Settings()
    changes = dict(row.changes)
    if "sharing" in changes:
        changes["sharing"] = _sharing(changes["sharing"])
    return replace(environment_policy(row.policy), **changes)


def _sharing(word: str) -> Sharing:
    return Sharing(word) if word in set(Sharing) else Sharing.OFF


def set_policy(user: User, name: str, changes: Mapping[str, Any]) -> Settings:
    """Run the fleet by a preset (empty: as the environment says) with some fields changed.

    ``changes`` takes the place of the changes there were.
    """
    require_admin(user)
    if name and name not in live_presets():
        raise Refused({"policy": f"Choose one of {', '.join(live_presets())}, or nothing."})
    wrong = {
        f"changes.{key}": said for key, value in changes.items() if (said := fault(key, value))
    }
    if wrong:
        raise Refused(wrong)
    with transaction.atomic():
        Settings.objects.get_or_create(pk=1)
        row = Settings.objects.select_for_update().get(pk=1)
        before = {"policy": row.policy, "changes": row.changes}
        row.policy, row.changes = name, dict(changes)
        row.save(update_fields=["policy", "changes"])
        if not changes.get("by_cluster"):
            call_all_back()
        after = {"policy": row.policy, "changes": row.changes}
        record(user, "policy set", "policy of the fleet", before, after)
        events.wake()
    return row


def fault(field: str, value: Any) -> str:
    """Answer what is wrong with a field's value; empty when nothing is."""
    if field not in CHOSEN:
        return f"The policy has no such field; it has {', '.join(CHOSEN)}."
    now = getattr(Policy(), field)
    if isinstance(now, Sharing):
        words = ", ".join(Sharing)
        return "" if value in set(Sharing) else f"Choose one of {words}."
    if isinstance(now, bool):
        return "" if isinstance(value, bool) else "Give true or false."
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < 1e12:
        return "Give a number of at least 0."
    if isinstance(now, int) and not isinstance(value, int):
        return "Give a whole number."
    return ""
