"""Quotas and members of a tenant, and service tiers, edited in place."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render

from portal.access import access_tenant, manage_tenant, require_admin
from portal.actions.members import remove_member, set_member
from portal.actions.tenants import remove_quota, set_quota
from portal.actions.tiers import change_tier
from portal.forms.tenants import MemberForm, QuotaForm, TierForm
from portal.models import Membership, Quota, Tenant, Tier
from portal.refusals import Refused
from portal.views.tenants import show_branch
from portal.views.visitors import Visitor, signed_in


def quota_of(tenant: Tenant, id: int) -> Quota | None:
    """A quota by its row; 0 stands for one that is not there yet."""
    return get_object_or_404(Quota, id=id, tenant=tenant) if id else None


@signed_in("GET", "POST")
def quota(request: Visitor, slug: str, id: int) -> HttpResponse:
    """Edit what a tenant may use of one kind of device."""
    require_admin(request.user)
    tenant = access_tenant(request.user, slug)
    there = quota_of(tenant, id)
    if request.method == "GET":
        initial = QuotaForm.initial_of(there) if there else {"lend": True, "borrow": 0}
        form = QuotaForm(initial=initial, prefix="quota")
        return show_branch(request, tenant, form=form, editing=id)
    form = QuotaForm(request.POST, prefix="quota")
    if there:
        form.fields["device_kind"].required = False
    if form.is_valid():
        values = form.cleaned_data
        kind = there.device_kind if there else values["device_kind"].strip()
        try:
            set_quota(
                request.user,
                tenant,
                kind,
                reserved=values["reserved"],
                borrow=values["borrow"],
                lend=values["lend"],
            )
        except Refused as refusal:
            form.refuse(refusal)
        else:
            return show_branch(request, tenant)
    return show_branch(request, tenant, form=form, editing=id)


@signed_in("POST")
def drop_quota(request: Visitor, slug: str, id: int) -> HttpResponse:
    """Remove the quota of one kind."""
    tenant = access_tenant(request.user, slug)
    there = quota_of(tenant, id)
    if there is None:
        raise Http404
    try:
        remove_quota(request.user, there)
    except Refused as refusal:
        return show_branch(request, tenant, refused=str(refusal))
    return show_branch(request, tenant)


@signed_in("POST")
def member(request: Visitor, slug: str) -> HttpResponse:
    """Make someone a member, or give a member another role."""
    tenant = manage_tenant(request.user, slug)
    form = MemberForm(request.POST, auto_id=False)
    if form.is_valid():
        try:
            set_member(
                request.user, tenant, form.cleaned_data["username"], form.cleaned_data["role"]
            )
        except Refused as refusal:
            form.refuse(refusal)
        else:
            return show_branch(request, tenant, opened=True)
    return show_branch(request, tenant, member_form=form)


@signed_in("POST")
def drop_member(request: Visitor, slug: str, id: int) -> HttpResponse:
    """End a membership."""
    tenant = manage_tenant(request.user, slug)
    remove_member(request.user, get_object_or_404(Membership, id=id, tenant=tenant))
    return show_branch(request, tenant, opened=True)


@signed_in("GET", "POST")
def tier(request: Visitor, slug: str) -> HttpResponse:
    """Edit a service tier; ``?cancel`` puts the row back."""
    require_admin(request.user)
    row = get_object_or_404(Tier, slug=slug)
    if request.method == "GET":
        if "cancel" in request.GET:
            return render(request, "tenants/_tier.html", {"tier": row})
        form = TierForm(initial=TierForm.initial_of(row), prefix="tier")
        return render(request, "tenants/_tier_form.html", {"tier": row, "form": form})
    form = TierForm(request.POST, prefix="tier")
    if form.is_valid():
        try:
            change_tier(request.user, row, **form.to_changes())
        except Refused as refusal:
            form.refuse(refusal)
        else:
            return render(request, "tenants/_tier.html", {"tier": row})
    context = {"tier": row, "form": form}
    return render(request, "tenants/_tier_form.html", context, status=422)
