"""Tenants as a tree with their quotas and members, the service tiers, and the audit trail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Prefetch, Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import SafeString

from portal.access import access_tenant, require_admin, visible_tenants
from portal.actions import tenants as actions
from portal.choices import ENDED_STATES, Role
from portal.drawings.bars import draw_quota
from portal.forms.tenants import MemberForm, TenantForm
from portal.models import AuditEntry, Membership, Quota, Tenant, Tier, User
from portal.refusals import Refused
from portal.views.occupancy import count_use
from portal.views.visitors import Visitor, go_to, numbered, signed_in

ENTRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One quota beside what is used of it."""

    quota: Quota
    used: int

    @property
    def borrowed(self) -> int:
        return max(0, self.used - self.quota.reserved)

    @property
    def idle(self) -> int:
        return max(0, self.quota.reserved - self.used)

    @property
    def limit(self) -> int | None:
        borrow = self.quota.borrow
        return None if borrow is None else self.quota.reserved + borrow

    @property
    def bar(self) -> SafeString:
        words = f"{self.used} used of {self.quota.reserved} reserved, {self.borrowed} borrowed"
        reserved = self.quota.reserved
        return draw_quota(used=self.used, reserved=reserved, limit=self.limit, label=words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A tenant at its depth in the tree."""

    tenant: Tenant
    depth: int
    shares: list[Share]
    used: int
    live: int
    managed: bool
    """Whether the user may change its members."""


@signed_in()
def tenants(request: Visitor) -> HttpResponse:
    """All tenants that the user belongs to; an admin sees the whole tree."""
    return render(request, "tenants/page.html", describe_page(request.user, TenantForm()))


def describe_page(user: User, form: TenantForm) -> dict[str, Any]:
    trail = AuditEntry.objects.select_related("actor")[:8] if user.is_admin else []
    return {
        "page": "tenants",
        "branches": grow_tree(user),
        "tiers": Tier.objects.all(),
        "form": form,
        "member_form": MemberForm(auto_id=False),
        "trail": trail,
    }


def grow_tree(user: User) -> list[Branch]:
    """Answer the tenants parents first, in a fixed number of queries."""
    members = Membership.objects.select_related("user").order_by("-role", "user__username")
    live = Count("jobs", filter=~Q(jobs__state__in=ENDED_STATES), distinct=True)
    rows = visible_tenants(user).annotate(live=live)
    rows = rows.prefetch_related("quotas", Prefetch("memberships", members))
    found = list(rows)
    use = count_use([tenant.pk for tenant in found])
    known = {tenant.pk for tenant in found}
    children: dict[int | None, list[Tenant]] = {}
    for tenant in found:
        above = tenant.parent_id if tenant.parent_id in known else None
        children.setdefault(above, []).append(tenant)
    branches: list[Branch] = []

    def climb(above: int | None, depth: int) -> None:
        for tenant in children.get(above, ()):
            branches.append(branch_of(tenant, depth, use, user))
            climb(tenant.pk, depth + 1)

    climb(None, 0)
    return branches


def branch_of(tenant: Tenant, depth: int, use: Mapping[tuple[int, str], int], user: User) -> Branch:
    used = sum(count for (owner, _), count in use.items() if owner == tenant.pk)
    shares = [
        Share(
            quota=quota,
            used=use.get((tenant.pk, quota.device_kind), 0) if quota.device_kind else used,
        )
        for quota in tenant.quotas.all()
    ]
    managed = user.is_admin or any(
        member.user_id == user.pk and member.role == Role.MANAGER
        for member in tenant.memberships.all()
    )
    return Branch(
        tenant=tenant,
        depth=depth,
        shares=shares,
        used=used,
        live=getattr(tenant, "live", 0),
        managed=managed,
    )


def show_branch(request: Visitor, tenant: Tenant, **context: Any) -> HttpResponse:
    """Answer one tenant's card anew, after something in it was changed."""
    branch = next(b for b in grow_tree(request.user) if b.tenant.pk == tenant.pk)
    status = 422 if any(getattr(value, "errors", None) for value in context.values()) else 200
    context = {"branch": branch, "member_form": MemberForm(auto_id=False), **context}
    return render(request, "tenants/_tenant.html", context, status=status)


@signed_in()
def tenant(request: Visitor, slug: str) -> HttpResponse:
    """One tenant's card, as it is without any form open."""
    return show_branch(request, access_tenant(request.user, slug))


@signed_in("POST")
def add(request: Visitor) -> HttpResponse:
    """Make a tenant."""
    require_admin(request.user)
    form = TenantForm(request.POST)
    if form.is_valid():
        values = form.cleaned_data
        try:
            made = actions.create_tenant(
                request.user, values["slug"], values["title"], parent=values["parent"]
            )
        except Refused as refusal:
            form.refuse(refusal)
        else:
            messages.success(request, f"{made.title} is there. Give it a quota and members.")
            return go_to(request, f"{reverse('tenants')}#{made.slug}")
    context = describe_page(request.user, form)
    return render(request, "tenants/page.html", context, status=422)


@signed_in()
def audit(request: Visitor) -> HttpResponse:
    """The whole trail of what admins and managers changed."""
    require_admin(request.user)
    rows = AuditEntry.objects.select_related("actor")
    page = Paginator(rows, ENTRIES).get_page(numbered(request, "page", 1))
    return render(request, "tenants/audit.html", {"page": "tenants", "page_": page})
