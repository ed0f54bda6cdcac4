"""The list of jobs, and one job with everything that was decided about it."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, F, Prefetch, Q, QuerySet
from django.db.models.expressions import CombinedExpression, OrderBy
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from portal.access import access_job, may_manage, visible_tenants
from portal.actions.accounting import fraction_of
from portal.actions.receipts import cost_of
from portal.actions.saving import query_of
from portal.choices import ENDED_STATES, JobState, PlacementState
from portal.drawings.pace import draw_grid, draw_pace
from portal.gains import known_of, matrix_of, profile_of, sentence_of
from portal.models import Job, Move, PlacedReplica, Placement, Tier
from portal.querysets import JobQuerySet
from portal.views.life import draw_life, standing_moves
from portal.views.saved import describe_views
from portal.views.standing import standing_of
from portal.views.steering import possible_acts
from portal.views.use import describe_use
from portal.views.visitors import Visitor, numbered, signed_in

SORTS: dict[str, F | CombinedExpression] = {
    "id": F("id"),
    "name": F("name"),
    "state": F("state"),
    "tenant": F("tenant__slug"),
    "owner": F("owner__username"),
    "devices": CombinedExpression(F("replicas"), "*", F("gpus_per_replica")),
    "moves": F("moves"),
}
NEWEST = "-id"
ROWS = 25
GROUPS = {
    "live": Q() & ~Q(state__in=ENDED_STATES),
    "ended": Q(state__in=ENDED_STATES),
    "running": Q(state__in=(JobState.RUNNING, JobState.STARTING, JobState.MOVING)),
}
RECEIPTS = 50
"""The most receipts that a job's page shows."""
CUTS = 10
"""The most checkpoints that it shows: older ones are superseded."""


@signed_in()
def jobs(request: Visitor) -> HttpResponse:
    """The jobs that the user may see: filtered, sorted and paged as the address says."""
    visible = Job.objects.visible_to(request.user)
    page = page_of(narrow(visible, request), request)
    context = {
        "page": "jobs",
        "page_": page,
        "sort": sort_of(request),
        "asked": request.GET,
        "narrowed": any(
            request.GET.get(name) for name in ("q", "state", "tenant", "tier", "mine", "moved")
        ),
    }
    if request.htmx and not request.htmx.boosted:
        return render(request, "jobs/_table.html", context)
    context |= {
        "groups": count_states(visible),
        "tenants": visible_tenants(request.user),
        "tiers": Tier.objects.all(),
        **describe_views(request, query_of(request.GET.dict())),
    }
    return render(request, "jobs/list.html", context)


def narrow(rows: JobQuerySet, request: Visitor) -> QuerySet[Job]:
    asked = request.GET
    if words := asked.get("q", "").strip():
        exact = Q(id=int(words)) if words.isascii() and words.isdigit() and len(words) < 19 else Q()
        rows = rows.filter(exact | Q(name__icontains=words) | Q(tags__icontains=words))
    state = asked.get("state", "")
    if state in GROUPS:
        rows = rows.filter(GROUPS[state])
    elif state in JobState.values:
        rows = rows.filter(state=state)
    if tenant := asked.get("tenant"):
        rows = rows.filter(tenant__slug=tenant)
    if tier := asked.get("tier"):
        rows = rows.filter(tier__slug=tier)
    if asked.get("mine"):
        rows = rows.filter(owner=request.user)
    if asked.get("moved"):
        rows = rows.filter(moves__gt=0)
    sort = sort_of(request)
    column = SORTS[sort.lstrip("-")]
    return rows.order_by(OrderBy(column, descending=sort.startswith("-")), "-id")


def sort_of(request: Visitor) -> str:
    sort = request.GET.get("sort", NEWEST)
    return sort if sort.lstrip("-") in SORTS else NEWEST


def page_of(rows: QuerySet[Job], request: Visitor) -> Page[Any]:
    present = Placement.objects.filter(state__in=(PlacementState.ACTIVE, PlacementState.PARKED))
    seats = Prefetch("replicas", PlacedReplica.objects.select_related("node"))
    rows = rows.select_related("tenant", "tier", "owner").prefetch_related(
        Prefetch("placements", present.prefetch_related(seats), to_attr="present")
    )
    return Paginator(rows, ROWS).get_page(numbered(request, "page", 1))


def count_states(visible: JobQuerySet) -> list[tuple[str, str, int]]:
    """Answer the groups that can be chosen, with label and count."""
    counts = dict(visible.order_by().values_list("state").annotate(count=Count("id")))
    running = sum(counts.get(state, 0) for state in ("running", "starting", "moving"))
    rest = ("waiting", "paused", "succeeded", "failed", "cancelled")
    return [
        ("", "All", sum(counts.values())),
        ("running", "Running", running),
        *((state, JobState(state).label, counts.get(state, 0)) for state in rest),
    ]


@signed_in()
def job(request: Visitor, id: int) -> HttpResponse:
    """One job."""
    row = access_job(request.user, id)
    context: dict[str, Any] = {"page": "jobs", "job": row, "ranks": range(min(row.replicas, 256))}
    for panel in PANELS.values():
        context |= panel(request, row)
    return render(request, "jobs/detail.html", context)


@signed_in()
def panel(request: Visitor, id: int, name: str) -> HttpResponse:
    """One panel of a job's page, for a page that is open already."""
    if name not in PANELS:
        raise Http404
    row = access_job(request.user, id)
    context = {"job": row, **PANELS[name](request, row)}
    return render(request, f"jobs/_{name}.html", context)


def describe_summary(request: Visitor, job: Job) -> dict[str, Any]:
    seats = PlacedReplica.objects.select_related("node")
    placements = list(job.placements.prefetch_related(Prefetch("replicas", seats)))
    now = timezone.now()
    present = [p for p in placements if p.state in {PlacementState.ACTIVE, PlacementState.PARKED}]
    may_steer = job.owner_id == request.user.pk or may_manage(request.user, job.tenant)
    ran_s = sum(
        ((p.ended_at or now) - p.running_at).total_seconds() for p in placements if p.running_at
    )
    return {
        "life": draw_life(job, placements, standing_moves(job), now),
        "present": present[-1] if present else None,
        "standing": standing_of(job, present[-1] if present else None),
        "ran_s": ran_s,
        "promise_kept": fraction_of(job, placements, now),
        "acts": possible_acts(job) if may_steer else [],
        "may_steer": may_steer,
    }


def describe_receipts(request: Visitor, job: Job) -> dict[str, Any]:
    moves: QuerySet[Move] = job.receipts.select_related("beneficiary__tenant", "asked_by", "job")
    return {"moves": moves[:RECEIPTS], "cost": cost_of(job)}


def describe_checkpoints(request: Visitor, job: Job) -> dict[str, Any]:
    newest = list(job.checkpoints.order_by("-number")[: CUTS + 1])
    return {"checkpoints": newest[:CUTS], "more_checkpoints": len(newest) > CUTS}


def describe_gains(request: Visitor, job: Job) -> dict[str, Any]:
    profile = profile_of(job)
    matrix = profile and matrix_of(profile)
    may_steer = job.owner_id == request.user.pk or may_manage(request.user, job.tenant)
    known = known_of(job)
    return {
        "measured": profile,
        "gained": sentence_of(profile) if profile else "",
        "known": known,
        "curve": draw_pace(profile.points, share=profile.share, now=known["cpus"])
        if profile
        else "",
        "grid": draw_grid(matrix) if matrix else None,
        "may_measure": may_steer
        and job.state == JobState.RUNNING
        and not (job.unprofiled or known["asked"]),
    }


PANELS = {
    "summary": describe_summary,
    "receipts": describe_receipts,
    "checkpoints": describe_checkpoints,
    "use": describe_use,
    "gains": describe_gains,
}
