"""One's own bearer tokens."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache

from portal.access import access_token
from portal.actions.tokens import create_token, revoke_token
from portal.forms.accounts import TokenForm
from portal.refusals import Refused
from portal.views.visitors import Visitor, posted, signed_in

SHOWN = 100


@never_cache
@signed_in("GET", "POST")
def tokens(request: Visitor) -> HttpResponse:
    """The list, and a new token, whose secret this one answer shows."""
    form = TokenForm(posted(request))
    secret = ""
    if request.method == "POST" and form.is_valid():
        days = form.cleaned_data["days"]
        try:
            _, secret = create_token(
                request.user, form.cleaned_data["name"], int(days) if days else None
            )
            form = TokenForm()
        except Refused as refusal:
            form.refuse(refusal)
    context = {
        "page": "tokens",
        "form": form,
        "secret": secret,
        "address": request.build_absolute_uri("/").rstrip("/"),
        "tokens": request.user.tokens.order_by("-revoked_at", "-created_at")[:SHOWN],
        "now": timezone.now(),
    }
    return render(request, "tokens/page.html", context, status=422 if form.errors else 200)


@signed_in("POST")
def revoke(request: Visitor, id: int) -> HttpResponse:
    """End a token."""
    token = access_token(request.user, id)
    revoke_token(token)
    messages.success(request, f"The token {token.name} is revoked.")
    return redirect("tokens")
