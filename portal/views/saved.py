"""Views of the list of jobs that the visitor keeps under names."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from portal.actions.saving import query_of, remove_view, save_view
from portal.refusals import Refused
from portal.views.visitors import Visitor, signed_in


def describe_views(request: Visitor, query: str) -> dict[str, Any]:
    """The kept views, which of them is shown, and the filters that can be kept."""
    return {"views": request.user.saved_views.all(), "query": query}


@never_cache
@signed_in()
def views(request: Visitor) -> HttpResponse:
    """Only the strip of views, for a list whose filters have changed."""
    return show(request, query_of(request.GET.dict()))


@signed_in("POST")
def save(request: Visitor) -> HttpResponse:
    """Keep the filters that are shown under a name."""
    asked = QueryDict(request.POST.get("query", "")[:1000]).dict()
    try:
        save_view(request.user, request.POST.get("name", ""), asked)
    except Refused as refusal:
        return show(request, query_of(asked), refused=str(refusal), status=422)
    return show(request, query_of(asked))


@signed_in("POST")
def remove(request: Visitor, id: int) -> HttpResponse:
    """Forget a view."""
    remove_view(request.user, id)
    return show(request, request.POST.get("query", ""))


def show(request: Visitor, query: str, refused: str = "", status: int = 200) -> HttpResponse:
    context = {**describe_views(request, query), "refused": refused}
    return render(request, "jobs/_views.html", context, status=status)
