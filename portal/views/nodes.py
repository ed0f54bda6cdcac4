"""The nodes: what each can do, and what admins decide about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from statistics import median
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from portal.access import access_node, require_admin
from portal.actions import nodes as actions
from portal.choices import MoveKind, PlacementState, Remedy
from portal.forms.nodes import NodeForm, NoteForm
from portal.forms.refusing import RefusingForm
from portal.models import Job, Move, Node, User
from portal.refusals import Refused
from portal.views.floor import Room, draw_floor
from portal.views.visitors import Visitor, go_to, numbered, posted, signed_in

ABILITIES = {
    "run": "Run jobs",
    "pause": "Pause in place",
    "checkpoint": "Checkpoint",
    "migrate": "Take over from other nodes",
    "device_checkpoint": "Checkpoint GPU memory",
    "network": "Job networks",
    "profile": "Measure what jobs gain from CPUs",
}
CARDS = 24
"""Nodes a page."""
CONDITIONS = {
    "well": ("Well", Q(lost_at=None, cordoned=False, draining=False) & ~Q(heard_at=None)),
    "draining": ("Draining", Q(draining=True)),
    "cordoned": ("Cordoned", Q(cordoned=True)),
    "lost": ("Lost", ~Q(lost_at=None)),
    "sick": ("With sick devices", Q(devices__sick__gt="")),
    "new": ("Not heard of yet", Q(heard_at=None)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What an admin may do to a node."""

    label: str
    perform: Callable[[User, Node, str], object]
    sentence: str
    danger: bool = False
    form: type[RefusingForm] = NoteForm


ACTS = {
    "cordon": Act(
        label="Cordon",
        perform=actions.cordon_node,
        sentence="Nothing new lands on it. What runs there stays.",
    ),
    "drain": Act(
        label="Drain",
        perform=actions.drain_node,
        sentence="Nothing new lands on it, and what runs there leaves.",
        danger=True,
    ),
    "open": Act(
        label="Open again",
        perform=lambda user, node, _: actions.uncordon_node(user, node),
        sentence="Jobs may land on it again.",
        form=RefusingForm,
    ),
    "remove": Act(
        label="Remove",
        perform=lambda user, node, _: actions.remove_node(user, node),
        sentence="The portal forgets it, and its agent is refused from now on.",
        danger=True,
        form=RefusingForm,
    ),
}


@signed_in()
def nodes(request: Visitor) -> HttpResponse:
    """The nodes, narrowed and paged as the address says."""
    return render(request, "nodes/page.html", {"form": NodeForm(), **describe(request)})


@signed_in()
def listing(request: Visitor) -> HttpResponse:
    """Only the list, for a page that is open already."""
    return render(request, "nodes/_list.html", describe(request))


def describe(request: Visitor) -> dict[str, Any]:
    page = Paginator(narrow(request), CARDS).get_page(numbered(request, "page", 1))
    shown = Node.objects.filter(id__in=[node.pk for node in page])
    floor = draw_floor(request.user, shown)
    return {
        "page": "nodes",
        "page_": page,
        "asked": request.GET,
        "conditions": {name: label for name, (label, _) in CONDITIONS.items()},
        "rooms": [(room, abilities_of(room)) for rack in floor.racks for room in rack.rooms],
    }


def narrow(request: Visitor) -> QuerySet[Node]:
    """The nodes whose name or place holds the words asked for, in the condition asked for."""
    rows = Node.objects.all()
    if words := request.GET.get("q", "").strip():
        fields = ("name", "region", "cluster", "rack", "note")
        rows = rows.filter(reduce(or_, (Q(**{f"{field}__icontains": words}) for field in fields)))
    if (condition := request.GET.get("condition", "")) in CONDITIONS:
        rows = rows.filter(CONDITIONS[condition][1]).distinct()
    return rows


def abilities_of(room: Room) -> list[tuple[str, bool, str]]:
    """Label, whether it is able, and why not, in a fixed order."""
    node = room.node
    names = [name for name in ABILITIES if name in node.abilities]
    return [(ABILITIES[name], node.able(name), node.why_not(name)) for name in names]


@never_cache
@signed_in("POST")
def add(request: Visitor) -> HttpResponse:
    """Enrol a node; this one answer shows its token."""
    require_admin(request.user)
    form = NodeForm(request.POST)
    if form.is_valid():
        values = form.cleaned_data
        places = {name: values[name] for name in actions.PLACES}
        try:
            node, secret = actions.create_node(request.user, values["name"], **places)
        except Refused as refusal:
            form.refuse(refusal)
        else:
            return show_token(request, node, secret)
    context = {"form": form, **describe(request)}
    return render(request, "nodes/page.html", context, status=422)


@never_cache
@signed_in("POST")
def renew(request: Visitor, name: str) -> HttpResponse:
    """Give a node a new token; this one answer shows it."""
    node = access_node(request.user, name)
    return show_token(request, node, actions.rotate_token(request.user, node))


def show_token(request: Visitor, node: Node, secret: str) -> HttpResponse:
    address = request.build_absolute_uri("/").rstrip("/")
    context = {"page": "nodes", "node": node, "secret": secret, "address": address}
    return render(request, "nodes/token.html", context)


@signed_in("GET", "POST")
def change(request: Visitor, name: str, act: str) -> HttpResponse:
    """Ask for an act upon a node: first what it will do, then the act itself."""
    if act not in ACTS:
        raise Http404
    require_admin(request.user)
    asked, node = ACTS[act], access_node(request.user, name)
    form = asked.form(posted(request))
    if request.method == "POST" and form.is_valid():
        try:
            asked.perform(request.user, node, form.cleaned_data.get("note", ""))
        except Refused as refusal:
            form.refuse(refusal)
        else:
            messages.success(request, f"{node.name}: {asked.sentence}")
            return go_to(request, reverse("nodes"))
    context = {"page": "nodes", "node": node, "act": asked, "name": act, "form": form}
    if act == "drain":
        context |= {"leaving": preview_drain(node), "usual_s": usual_downtime_s()}
    template = "nodes/_confirm.html" if request.htmx else "nodes/confirm.html"
    return render(request, template, context, status=422 if form.errors else 200)


def usual_downtime_s() -> float | None:
    """The median of what migrations lately cost, in seconds without a step; None without any."""
    moves = Move.objects.filter(kind=MoveKind.MIGRATE).exclude(resumed_at=None)[:50]
    known = [move.downtime_s for move in moves if move.downtime_s is not None]
    return median(known) if known else None


def preview_drain(node: Node) -> list[tuple[str, list[Job]]]:
    """The jobs that a drain touches, by what becomes of them, gentlest first."""
    jobs = (
        Job.objects.filter(placements__state=PlacementState.ACTIVE, placements__replicas__node=node)
        .select_related("tenant", "owner")
        .order_by("id")
        .distinct()
    )
    fates = {
        Remedy.TRANSPARENT: "will move and go on at the same step",
        Remedy.PAUSE: "can only be frozen here, and will stay until the end",
        Remedy.REQUEUE: "will start again elsewhere",
    }
    groups: defaultdict[Remedy, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[Remedy(job.remedy)].append(job)
    return [(fate, groups[remedy]) for remedy, fate in fates.items() if groups[remedy]]
