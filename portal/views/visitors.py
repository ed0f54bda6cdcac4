"""Who asks for a page: people who are signed in, in the browser or through htmx."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    QueryDict,
)
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from portal.models import User

P = ParamSpec("P")


class Visitor(HttpRequest):
    """A request of someone who is signed in."""

    user: User
    htmx: HtmxDetails


def signed_in(
    *methods: str,
) -> Callable[
    [Callable[Concatenate[Visitor, P], HttpResponseBase]],
    Callable[Concatenate[HttpRequest, P], HttpResponseBase],
]:
    """Let people who are signed in through, with these methods (GET unless named)."""
    allowed = methods or ("GET",)

    def wrap(
        view: Callable[Concatenate[Visitor, P], HttpResponseBase],
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
        @wraps(view)
        def page(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if request.method not in {*allowed, "HEAD" if "GET" in allowed else ""}:
                return HttpResponseNotAllowed(allowed)
            visitor = cast("Visitor", request)
            if request.user.is_authenticated:
                return view(visitor, *args, **kwargs)
            if visitor.htmx:
                # A panel must not become the login page; the whole page has to go there.
                return HttpResponseClientRedirect(f"{settings.LOGIN_URL}?next=/")
            return redirect_to_login(request.get_full_path())

        return page

    return wrap


def posted(request: HttpRequest) -> QueryDict | None:
    """What a form is bound to: the posted fields, be they none, or nothing before it is posted."""
    return request.POST if request.method == "POST" else None


def go_to(request: Visitor, url: str) -> HttpResponse:
    """Send the browser on after something was done, from a plain form or through htmx."""
    if request.htmx:
        return cast("HttpResponse", HttpResponseClientRedirect(url))
    return HttpResponseRedirect(url)


def numbered(request: HttpRequest, name: str, default: int) -> int:
    """A whole number from the query string, or the default where there is none."""
    text: Any = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else default
