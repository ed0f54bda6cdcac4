"""What if: ask for a simulation, watch it, and compare what it showed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from portal.access import access_simulation, require_admin
from portal.actions.simulations import (
    SHARED,
    ask_simulation,
    cancel_simulation,
    describe_tier,
    remove_simulation,
)
from portal.choices import SimulationState
from portal.comparing import compare, runs_of
from portal.forms.simulations import SimulationForm
from portal.models import Simulation
from portal.refusals import Refused
from portal.views.visitors import Visitor, go_to, numbered, signed_in
from scheduler.planner import Sharing

ROWS = 20
LOOKS = {
    SimulationState.QUEUED: ("waiting", "waiting"),
    SimulationState.RUNNING: ("active", "running"),
    SimulationState.DONE: ("done", "succeeded"),
    SimulationState.FAILED: ("bad", "failed"),
    SimulationState.CANCELLED: ("quiet", "cancelled"),
}
"""State -> tone and icon."""


@signed_in("GET", "POST")
def simulations(request: Visitor) -> HttpResponse:
    """What was asked, and the form to ask."""
    require_admin(request.user)
    form = SimulationForm(initial=asked_before(request))
    if request.method == "POST":
        form = SimulationForm(request.POST, request.FILES)
        if form.is_valid():
            try:
                simulation = ask_simulation(request.user, form.to_question())
            except Refused as refusal:
                form.refuse(refusal)
            else:
                return go_to(request, reverse("simulation", args=[simulation.pk]))
    rows = Simulation.objects.select_related("owner").defer("figures", "table", "measures")
    page = Paginator(rows, ROWS).get_page(numbered(request, "page", 1))
    looks = [(row, *LOOKS[SimulationState(row.state)]) for row in page]
    context = {"page": "what-if", "form": form, "page_": page, "rows": looks}
    status = 422 if form.errors else 200
    return render(request, "simulations/page.html", context, status=status)


def asked_before(request: Visitor) -> dict[str, Any]:
    """What the simulation asked that the address names, to be changed and asked again."""
    number = numbered(request, "again", 0)
    before = Simulation.objects.defer("figures", "table", "measures").filter(id=number).first()
    if before:
        return SimulationForm.initial_of(before)
    return {name: request.GET[name] for name in ("policy", "sharing") if name in request.GET}


def describe(simulation: Simulation) -> dict[str, Any]:
    tone, shape = LOOKS[SimulationState(simulation.state)]
    return {
        "page": "what-if",
        "simulation": simulation,
        "tone": tone,
        "shape": shape,
        "compared": compare(runs_of(simulation)),
        "tiers": [f"{slug} {describe_tier(told)}" for slug, told in simulation.tiers.items()],
        "shared": SHARED[Sharing(simulation.sharing)] if simulation.sharing else "",
        "costs": costs_told(simulation.costs),
    }


def costs_told(costs: dict[str, Any]) -> list[tuple[str, str]]:
    """What moves were taken to cost, as names and values; empty until it was played."""
    if not costs:
        return []
    rate = costs["store_gb_s"]
    return [
        ("Checkpoint", f"{costs['checkpoint_s']:g} s"),
        ("Restore", f"{costs['restore_s']:g} s"),
        ("To store and fetch", f"{rate:g} GB/s a node" if rate else "no time"),
        ("Image where none is known", f"{costs['image_gb_per_gpu']:g} GB a device"),
        ("Pace lost on shared devices", f"{100 * costs['squeeze']:g} %"),
    ]


@signed_in()
def simulation(request: Visitor, id: int) -> HttpResponse:
    """One simulation: how far it is, then the comparison."""
    context = describe(access_simulation(request.user, id))
    return render(request, "simulations/detail.html", context)


@signed_in()
def panel(request: Visitor, id: int) -> HttpResponse:
    """Only what changes on it, for a page that is open already."""
    return render(request, "simulations/_panel.html", describe(access_simulation(request.user, id)))


@signed_in()
def charts(request: Visitor, id: int) -> JsonResponse:
    """Its figures, as Plotly takes them."""
    require_admin(request.user)
    found = Simulation.objects.filter(id=id).values_list("figures", flat=True).first()
    if found is None:
        raise Http404(f"There is no simulation {id}.")
    return JsonResponse({"figures": found})


@signed_in("POST")
def cancel(request: Visitor, id: int) -> HttpResponse:
    """Call it off."""
    row = access_simulation(request.user, id)
    cancel_simulation(request.user, row)
    return go_to(request, reverse("simulation", args=[row.pk]))


@signed_in("POST")
def remove(request: Visitor, id: int) -> HttpResponse:
    """Remove it, with its trace and what it showed."""
    row = access_simulation(request.user, id)
    try:
        remove_simulation(request.user, row)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return go_to(request, reverse("simulation", args=[row.pk]))
    return go_to(request, reverse("simulations"))
