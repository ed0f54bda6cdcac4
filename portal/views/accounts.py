"""Log in and out, and choose how pages look."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login as log_in
from django.contrib.auth import logout as log_out
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from portal.actions.accounts import change_preferences
from portal.actions.signing import TooManyAttempts, sign_in
from portal.forms.accounts import LoginForm, PreferencesForm
from portal.refusals import Refused
from portal.views.visitors import Visitor, posted, signed_in


@never_cache
@sensitive_post_parameters("password")
def login(request: HttpRequest) -> HttpResponse:
    """Log in, and go on to the page that was asked for."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(
        wanted, {request.get_host()}, require_https=request.is_secure()
    )
    onward = wanted if safe else settings.LOGIN_REDIRECT_URL
    if request.user.is_authenticated:
        return redirect(onward)
    form = LoginForm(posted(request))
    status = 200
    if request.method == "POST" and form.is_valid():
        try:
            user = sign_in(request, form.cleaned_data["username"], form.cleaned_data["password"])
        except Refused as refusal:
            form.refuse(refusal)
            status = 429 if isinstance(refusal, TooManyAttempts) else 422
        else:
            log_in(request, user)
            return redirect(onward)
    context = {"form": form, "next": wanted if safe else ""}
    return render(request, "accounts/login.html", context, status=status)


def logout(request: HttpRequest) -> HttpResponse:
    """Log out; only by POST, so that no other site's picture can do it."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    log_out(request)
    return redirect(settings.LOGOUT_REDIRECT_URL)


@signed_in("GET", "POST")
def preferences(request: Visitor) -> HttpResponse:
    """Theme and time zone. The frame's switch posts a theme alone."""
    user = request.user
    if request.method == "POST":
        theme, zone = request.POST.get("theme"), request.POST.get("time_zone")
        form = PreferencesForm({"theme": theme or user.theme, "time_zone": zone or ""})
        try:
            change_preferences(user, theme=theme, time_zone=zone)
        except Refused as refusal:
            form.refuse(refusal)
            return render(request, "accounts/preferences.html", {"form": form}, status=422)
        if zone is not None:
            messages.success(request, "Saved.")
        return redirect("preferences" if zone is not None else "/")
    form = PreferencesForm(initial={"theme": user.theme, "time_zone": user.time_zone})
    return render(request, "accounts/preferences.html", {"form": form})
