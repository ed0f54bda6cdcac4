"""Say who belongs to a tenant, and in which role; its managers and admins may."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import transaction

from portal.access import may_manage
from portal.actions.audit import record
from portal.choices import Role
from portal.models import Membership, Tenant, User
from portal.refusals import Refused


def set_member(user: User, tenant: Tenant, username: str, role: str) -> Membership:
    """Make someone a member in this role, or give a member another role."""
    require_manager(user, tenant)
    if role not in Role.values:
        raise Refused({"role": f"Choose one of {', '.join(Role.values)}."})
    person = User.objects.filter(username=username, is_active=True).first()
    if person is None:
        raise Refused({"username": f"There is no account {username!r}; an admin can make it."})
    with transaction.atomic():
        there = Membership.objects.filter(tenant=tenant, user=person).first()
        member, _ = Membership.objects.update_or_create(
            tenant=tenant, user=person, defaults={"role": role}
        )
        subject = f"{username} in {tenant.slug}"
        before = {"role": there.role} if there else {}
        record(user, "member set", subject, before, {"role": str(role)})
    return member


def remove_member(user: User, member: Membership) -> None:
    """End a membership. The member's jobs stay with the tenant, whose managers look after them."""
    require_manager(user, member.tenant)
    with transaction.atomic():
        subject = f"{member.user.username} in {member.tenant.slug}"
        record(user, "member removed", subject, {"role": member.role}, {})
        member.delete()


def require_manager(user: User, tenant: Tenant) -> None:
    if not may_manage(user, tenant):
        raise PermissionDenied(f"Only a manager of {tenant.slug} or an admin may do this.")
