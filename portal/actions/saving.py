"""Keep views of the list of jobs under a name, for oneself."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from portal.models import SavedView, User
from portal.refusals import Refused

FILTERS = ("state", "q", "tenant", "tier", "mine", "moved", "sort")
MOST = 30
"""Views that one person may keep."""


def save_view(user: User, name: str, asked: Mapping[str, str]) -> SavedView:
    """Keep these filters under a name; a view of that name is replaced."""
    name = name.strip()
    if not 1 <= len(name) <= 60:
        raise Refused({"name": "Give a name of 1 to 60 characters."})
    query = query_of(asked)
    if not query:
        raise Refused({"name": "Choose a filter first; this is the whole list."})
    if len(query) > 600:
        raise Refused({"name": "These filters are too long to be kept; shorten the search."})
    others = SavedView.objects.filter(user=user).exclude(name=name)
    if others.count() >= MOST:
        raise Refused({"name": f"You keep {MOST} views; remove one first."})
    view, _ = SavedView.objects.update_or_create(user=user, name=name, defaults={"query": query})
    return view


def query_of(asked: Mapping[str, str]) -> str:
    """The filters of an address, in a fixed order and without pages."""
    return urlencode({name: asked[name] for name in FILTERS if asked.get(name)})


def remove_view(user: User, id: int) -> None:
    """Forget a view; nothing happens where the user has none of that number."""
    SavedView.objects.filter(user=user, id=id).delete()
