"""The fleet: every device, what runs there, and how much of it is used."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Q
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone

from portal.choices import JobState
from portal.models import Device, FleetSample, Job, Move, Node
from portal.views.floor import draw_floor
from portal.views.occupancy import colour_tenants
from portal.views.survey import take_survey
from portal.views.visitors import Visitor, numbered, signed_in

RANGES = {1: "1 h", 6: "6 h", 24: "24 h", 168: "7 d"}
METRICS = {"use": "Utilisation", "owner": "Allocation", "memory": "Memory"}
POINTS = 360
"""The most points a line has; of more samples every n-th is shown."""
TILES = 1024
"""The most devices of which each is an element of the page; more are drawn on a canvas."""
PACKED = 10_000
"""Characters from which on packing pays."""
PLACES = ("region", "cluster", "rack")
BUSY = (JobState.RUNNING, JobState.STARTING, JobState.MOVING)


@signed_in()
def fleet(request: Visitor) -> HttpResponse:
    """The home page."""
    metric = request.GET.get("metric", "use")
    moves = Move.objects.filter(job__in=Job.objects.visible_to(request.user)).select_related(
        "job", "beneficiary__tenant", "asked_by"
    )[:6]
    context = {
        "page": "fleet",
        "hours": chosen_range(request),
        "ranges": RANGES,
        "metrics": METRICS,
        "metric": metric if metric in METRICS else "use",
        "moves": moves,
        **describe_fleet(request),
    }
    return render(request, "fleet/page.html", context)


@signed_in()
def floor(request: Visitor) -> HttpResponse:
    """Only the totals and the floor plan, for a page that is open already."""
    return render(request, "fleet/_floor.html", describe_fleet(request))


@signed_in()
def survey(request: Visitor) -> HttpResponse:
    """Every device of a large fleet, to be drawn; packed, since it is much and says little."""
    told = json.dumps(
        take_survey(request.user, asked_places(request)).to_json(), separators=(",", ":")
    )
    response = HttpResponse(told, content_type="application/json")
    if "gzip" in request.headers.get("Accept-Encoding", "") and len(told) > PACKED:
        response.content = gzip.compress(response.content, compresslevel=1)
        response["Content-Encoding"] = "gzip"
    response["Vary"] = "Accept-Encoding, Cookie"
    return response


def asked_places(request: Visitor) -> dict[str, str]:
    """The region, cluster and rack that the address names."""
    return {name: request.GET[name] for name in PLACES if name in request.GET}


def crumbs(request: Visitor) -> Iterator[tuple[str, str]]:
    """Each place that the address names, with the query that leads there."""
    query: dict[str, str] = {}
    for name in PLACES:
        if name in request.GET:
            query[name] = request.GET[name]
            yield request.GET[name], urlencode(query)


def describe_fleet(request: Visitor) -> dict[str, Any]:
    """A tile for each device; beyond ``TILES`` a drawing of them, and a table of clusters."""
    user, places = request.user, asked_places(request)
    nodes = Node.objects.filter(**places)
    whole = Device.objects.count()
    large = whole > TILES and Device.objects.filter(node__in=nodes.order_by()).count() > TILES
    jobs = Job.objects.visible_to(user).aggregate(
        running=Count("id", filter=Q(state__in=BUSY)),
        waiting=Count("id", filter=Q(state=JobState.WAITING)),
    )
    return {
        "floor": take_survey(user, places) if large else draw_floor(user, nodes),
        "large": large,
        "polled": whole > TILES,
        "jobs": jobs,
        "places": list(crumbs(request)),
    }


@signed_in()
def history(request: Visitor) -> JsonResponse:
    """Use and allocation over time, in devices; tenants that the user is not in are added up."""
    since = timezone.now() - timedelta(hours=chosen_range(request))
    samples = list(FleetSample.objects.filter(at__gte=since))
    samples = samples[:: max(1, len(samples) // POINTS)]
    colours = colour_tenants(request.user)
    lines: dict[str, list[float]] = {}
    for place, sample in enumerate(samples):
        for slug, devices in sample.tenants.items():
            name = slug if slug in colours else "other tenants"
            line = lines.setdefault(name, [0.0] * len(samples))
            line[place] += devices
    return JsonResponse(
        {
            "at": [sample.at.isoformat() for sample in samples],
            "devices": [sample.devices for sample in samples],
            "allocated": [sample.allocated for sample in samples],
            "utilisation": [round(sample.utilisation, 2) for sample in samples],
            "colours": colours,
            "waiting": [sample.waiting for sample in samples],
            "tenants": dict(
                sorted(lines.items(), key=lambda line: (line[0] == "other tenants", line[0]))
            ),
        }
    )


def chosen_range(request: Visitor) -> int:
    hours = numbered(request, "hours", 6)
    return hours if hours in RANGES else 6
