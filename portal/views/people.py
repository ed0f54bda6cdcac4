"""Accounts: everyone who may log in, for admins to make, change and shut out."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters

from portal.access import require_admin
from portal.actions import accounts as actions
from portal.choices import ENDED_STATES
from portal.forms.people import AccountChangeForm, AccountForm, NewPasswordForm, OwnPasswordForm
from portal.forms.refusing import RefusingForm
from portal.models import User
from portal.views.doing import done
from portal.views.visitors import Visitor, numbered, posted, signed_in

ROWS = 50
KINDS = {
    "admins": ("Admins", Q(is_staff=True)),
    "shut-out": ("Shut out", Q(is_active=False)),
    "no-tenant": ("Of no tenant", Q(memberships=None)),
}
LIVE = Count("jobs", filter=~Q(jobs__state__in=ENDED_STATES), distinct=True)


@sensitive_post_parameters("password")
@signed_in("GET", "POST")
def people(request: Visitor) -> HttpResponse:
    """All accounts, and the form of a new one."""
    require_admin(request.user)
    form = AccountForm(posted(request))
    if done(request, form, lambda values: actions.create_account(request.user, **values)):
        username = form.cleaned_data["username"]
        messages.success(request, f"{username} may log in. Add them to a tenant.")
        return redirect("person", username)
    page = Paginator(narrow(request), ROWS).get_page(numbered(request, "page", 1))
    context = {
        "page": "tenants",
        "page_": page,
        "asked": request.GET,
        "kinds": {name: label for name, (label, _) in KINDS.items()},
        "form": form,
    }
    return render(request, "accounts/people.html", context, status=422 if form.errors else 200)


def narrow(request: Visitor) -> QuerySet[User]:
    rows = User.objects.prefetch_related("memberships__tenant").annotate(live=LIVE)
    if words := request.GET.get("q", "").strip():
        tenant = Q(memberships__tenant__slug__icontains=words)
        found = Q(username__icontains=words) | Q(email__icontains=words) | tenant
        rows = rows.filter(pk__in=User.objects.filter(found).values("pk"))
    if (kind := request.GET.get("kind", "")) in KINDS:
        rows = rows.filter(KINDS[kind][1])
    return rows.order_by("username")


def find(username: str) -> User:
    account = (
        User.objects.filter(username=username)
        .prefetch_related("memberships__tenant")
        .annotate(live=LIVE)
        .first()
    )
    if account is None:
        raise Http404(f"There is no account {username!r}.")
    return account


@signed_in("GET", "POST")
def person(request: Visitor, username: str) -> HttpResponse:
    """One account: what admins may change of it."""
    require_admin(request.user)
    account = find(username)
    form = AccountChangeForm(
        posted(request), initial={field: getattr(account, field) for field in actions.FIELDS}
    )
    if done(request, form, lambda values: actions.change_account(request.user, account, **values)):
        messages.success(request, "Saved.")
        return redirect("person", username)
    return show(request, find(username), form=form)


@sensitive_post_parameters("password")
@signed_in("POST")
def set_password(request: Visitor, username: str) -> HttpResponse:
    """Give someone a new password."""
    require_admin(request.user)
    account = find(username)
    form = NewPasswordForm(request.POST)
    if done(
        request,
        form,
        lambda values: actions.set_password(request.user, account, values["password"]),
    ):
        if account.pk == request.user.pk:
            update_session_auth_hash(request, account)
        messages.success(request, f"{username} logs in with the new password from now on.")
        return redirect("person", username)
    return show(request, account, password_form=form)


def show(request: Visitor, account: User, **forms: RefusingForm) -> HttpResponse:
    initial = {field: getattr(account, field) for field in actions.FIELDS}
    context: dict[str, Any] = {
        "page": "tenants",
        "account": account,
        "form": AccountChangeForm(initial=initial),
        "password_form": NewPasswordForm(),
        **forms,
    }
    status = 422 if any(form.errors for form in forms.values()) else 200
    return render(request, "accounts/person.html", context, status=status)


@sensitive_post_parameters("old_password", "new_password")
@signed_in("GET", "POST")
def own_password(request: Visitor) -> HttpResponse:
    """Change one's own password."""
    form = OwnPasswordForm(posted(request))
    if done(
        request,
        form,
        lambda told: actions.change_password(
            request.user, told["old_password"], told["new_password"]
        ),
    ):
        update_session_auth_hash(request, request.user)
        messages.success(request, "Your password is changed.")
        return redirect("preferences")
    return render(
        request, "accounts/password.html", {"form": form}, status=422 if form.errors else 200
    )
