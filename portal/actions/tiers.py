"""Make and change the service tiers; admins only."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from portal import events
from portal.access import require_admin
from portal.actions.audit import record
from portal.actions.tenants import check_slug
from portal.models import Tier, User
from portal.refusals import Refused

FIELDS = ("title", "rank", "promise", "preemptible", "checkpoint_every_s")
SHORTEST_PERIOD_S = 10


def create_tier(user: User, slug: str, **fields: Any) -> Tier:
    """Make a tier: title, rank, promise (0 to 1), preemptible, checkpoint_every_s (None: never)."""
    require_admin(user)
    tier = Tier(slug=check_slug(slug), **{"title": slug, **fields})
    check_tier(tier)
    try:
        with transaction.atomic():
            tier.save()
            record(user, "tier created", f"tier {slug}", {}, describe_tier(tier))
    except IntegrityError:
        raise Refused({"slug": f"There is a tier {slug!r} already."}, id="taken") from None
    return tier


def change_tier(user: User, tier: Tier, **changes: Any) -> Tier:
    """Set some of a tier's fields; its jobs are promised the new fraction from now on."""
    require_admin(user)
    before = describe_tier(tier)
    for field in FIELDS:
        if field in changes:
            setattr(tier, field, changes[field])
    check_tier(tier)
    with transaction.atomic():
        tier.save(update_fields=list(FIELDS))
        record(user, "tier changed", f"tier {tier.slug}", before, describe_tier(tier))
        events.wake()
    return tier


def remove_tier(user: User, tier: Tier) -> None:
    """Remove a tier that no job ever named."""
    require_admin(user)
    try:
        with transaction.atomic():
            record(user, "tier removed", f"tier {tier.slug}", describe_tier(tier), {})
            tier.delete()
    except ProtectedError:
        raise Refused(
            f"Jobs name the tier {tier.slug}, which keeps it.", id="in-use", conflict=True
        ) from None


def check_tier(tier: Tier) -> None:
    if not 1 <= len(tier.title) <= 80:
        raise Refused({"title": "Give a title of 1 to 80 characters."})
    if not 0.0 <= tier.promise <= 1.0:
        raise Refused({"promise": "Promise a fraction from 0 (none) to 1."})
    if not -1000 <= tier.rank <= 1000:
        raise Refused({"rank": "Give a rank from -1000 to 1000."})
    period = tier.checkpoint_every_s
    if period is not None and not SHORTEST_PERIOD_S <= period <= 30 * 86400:
        raise Refused(
            {"checkpoint_every_s": f"Give {SHORTEST_PERIOD_S} seconds to 30 days, or nothing."}
        )


def describe_tier(tier: Tier) -> dict[str, Any]:
    return {field: getattr(tier, field) for field in FIELDS}
