"""Make and change tenants and what they may use; admins only."""

from __future__ import annotations

import re
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from portal import events
from portal.access import require_admin
from portal.actions.audit import record
from portal.models import Quota, Tenant, User
from portal.refusals import Refused

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
MOST_DEVICES = 10_000_000
QUOTA_FIELDS = ("reserved", "borrow", "lend")
TENANT_FIELDS = ("title", "parent", "weight")


def check_slug(slug: str, field: str = "slug") -> str:
    """Answer a slug that is fit for addresses, or refuse it."""
    if not SLUG.fullmatch(slug):
        raise Refused({field: "Use 1 to 40 small letters, digits and inner hyphens."})
    return slug


def create_tenant(
    user: User, slug: str, title: str = "", *, parent: Tenant | None = None, weight: float = 1.0
) -> Tenant:
    """Make a tenant without members and without quota: it may use nothing that is reserved yet."""
    require_admin(user)
    tenant = Tenant(slug=check_slug(slug), title=title or slug, parent=parent, weight=weight)
    check_tenant(tenant)
    try:
        with transaction.atomic():
            tenant.save()
            # Without any quota its use would be unlimited; a new tenant begins with nothing.
            Quota.objects.create(tenant=tenant)
            record(user, "tenant created", f"tenant {slug}", {}, describe_tenant(tenant))
    except IntegrityError:
        raise Refused({"slug": f"There is a tenant {slug!r} already."}, id="taken") from None
    return tenant


def change_tenant(user: User, tenant: Tenant, **changes: Any) -> Tenant:
    """Set title, parent or weight."""
    require_admin(user)
    before = describe_tenant(tenant)
    for field in TENANT_FIELDS:
        if field in changes:
            setattr(tenant, field, changes[field])
    check_tenant(tenant)
    with transaction.atomic():
        tenant.save(update_fields=list(TENANT_FIELDS))
        record(user, "tenant changed", f"tenant {tenant.slug}", before, describe_tenant(tenant))
        events.wake()
    return tenant


def remove_tenant(user: User, tenant: Tenant) -> None:
    """Remove a tenant that never had a job and has no tenants below it."""
    require_admin(user)
    try:
        with transaction.atomic():
            record(user, "tenant removed", f"tenant {tenant.slug}", describe_tenant(tenant), {})
            tenant.delete()
    except ProtectedError:
        raise Refused(
            f"{tenant.slug} has jobs or tenants below it, which keep it; set its quota to 0.",
            id="in-use",
            conflict=True,
        ) from None


def check_tenant(tenant: Tenant) -> None:
    """Refuse a weight that is none, a title that is too long and a tree that bites its tail."""
    if not 0.001 <= tenant.weight <= 1e6:
        raise Refused({"weight": "Give a weight from 0.001 to 1000000."})
    if not 1 <= len(tenant.title) <= 80:
        raise Refused({"title": "Give a title of 1 to 80 characters."})
    above = tenant.parent
    while above is not None:
        if above.pk == tenant.pk or above.slug == tenant.slug:
            raise Refused({"parent": f"{tenant.slug} can't lie below itself."})
        above = above.parent


def set_quota(
    user: User,
    tenant: Tenant,
    device_kind: str = "",
    *,
    reserved: int,
    borrow: int | None = 0,
    lend: bool = True,
) -> Quota:
    """Set what a tenant may use of one kind of device, in devices; an empty kind counts every kind.

    ``borrow`` None: as many as others leave idle.
    """
    require_admin(user)
    if len(device_kind) > 60:
        raise Refused({"device_kind": "Name the kind with 60 characters at most."})
    for field, number in (("reserved", reserved), ("borrow", borrow)):
        if number is not None and not 0 <= number <= MOST_DEVICES:
            raise Refused({field: f"Give a number of devices from 0 to {MOST_DEVICES}."})
    with transaction.atomic():
        there = Quota.objects.filter(tenant=tenant, device_kind=device_kind).first()
        quota, _ = Quota.objects.update_or_create(
            tenant=tenant,
            device_kind=device_kind,
            defaults={"reserved": reserved, "borrow": borrow, "lend": lend},
        )
        before = describe_quota(there) if there else {}
        record(user, "quota set", quota_subject(quota), before, describe_quota(quota))
        events.wake()
    return quota


def remove_quota(user: User, quota: Quota) -> None:
    """Remove the quota of one kind; the last one stays, for a tenant without any has no limit."""
    require_admin(user)
    if not Quota.objects.filter(tenant_id=quota.tenant_id).exclude(id=quota.id).exists():
        raise Refused(
            "It is the tenant's only quota, and without any it could use everything; "
            "set it to 0 instead.",
            id="only-quota",
            conflict=True,
        )
    with transaction.atomic():
        record(user, "quota removed", quota_subject(quota), describe_quota(quota), {})
        quota.delete()
        events.wake()


def quota_subject(quota: Quota) -> str:
    return f"quota of {quota.tenant.slug} for {quota.device_kind or 'any kind'}"


def describe_quota(quota: Quota) -> dict[str, Any]:
    return {field: getattr(quota, field) for field in QUOTA_FIELDS}


def describe_tenant(tenant: Tenant) -> dict[str, Any]:
    return {
        "title": tenant.title,
        "parent": tenant.parent.slug if tenant.parent else None,
        "weight": tenant.weight,
    }
