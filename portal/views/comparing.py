"""What if, compared: any number of runs side by side, under an address that can be shared."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from portal.choices import SimulationState
from portal.comparing import Comparison, Run, choose, compare, overlay
from portal.models import Simulation
from portal.views.tables import as_lines
from portal.views.visitors import Visitor, go_to, signed_in

OFFERED = 200
"""So many of the newest simulations are offered to be added."""


def asked_runs(request: Visitor, *, figures: bool = False) -> list[Run]:
    """What ``runs`` and ``of`` name; the latter comes from ticks, one simulation each."""
    words = request.GET.get("runs", "").split(",") + request.GET.getlist("of")
    return choose(request.user, (word for word in words if word.strip()), figures=figures)


@signed_in()
def comparison(request: Visitor) -> HttpResponse:
    """Runs side by side. The address is made plain, so that it can be shared."""
    runs = asked_runs(request)
    compared = compare(runs)
    if request.GET.getlist("of"):
        return go_to(request, f"{reverse('simulations-compare')}?runs={compared.words}")
    here = {run.simulation.pk for run in runs}
    done = Simulation.objects.filter(state=SimulationState.DONE).exclude(id__in=here)
    context = {
        "page": "what-if",
        "compared": compared,
        "columns": describe_columns(compared),
        "others": done.values_list("id", "title")[:OFFERED],
    }
    return render(request, "simulations/compare.html", context)


def describe_columns(compared: Comparison) -> list[dict[str, Any]]:
    """Each run with the addresses of the comparison without it, and with it first."""
    words = [run.word for run in compared.runs]
    return [
        {
            "run": run,
            "shade": shade,
            "dash": dash,
            "without": ",".join(word for word in words if word != run.word),
            "first": ",".join([run.word, *(word for word in words if word != run.word)]),
        }
        for run, shade, dash in compared.strokes
    ]


@signed_in()
def charts(request: Visitor) -> JsonResponse:
    """The figures of the runs over each other, as Plotly takes them."""
    return JsonResponse({"figures": overlay(asked_runs(request, figures=True))})


@signed_in()
def table(request: Visitor) -> HttpResponse:
    """The comparison as a table for other programs: a line a measure, a column a run."""
    compared = compare(asked_runs(request))
    rows = [[line.name, *(cell.value for cell in line.cells)] for line in compared.lines]
    heads = ["measure", *(run.name for run in compared.runs)]
    return HttpResponse(
        as_lines([heads, *rows]),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="comparison.csv"'},
    )
