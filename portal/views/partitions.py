"""Partitions: sets of nodes, and the tenants whose jobs may ask for them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count, Prefetch, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render

from portal.access import access_partition, require_admin, visible_partitions, visible_tenants
from portal.actions import partitions as actions
from portal.choices import ENDED_STATES
from portal.drawings.figures import count
from portal.forms.partitions import PartitionChangeForm, PartitionForm
from portal.models import Job, Partition
from portal.refusals import Refused
from portal.views.doing import done
from portal.views.visitors import Visitor, posted, signed_in


@signed_in("GET", "POST")
def partitions(request: Visitor) -> HttpResponse:
    """The partitions open to the user; admins add more."""
    if request.method == "POST":
        require_admin(request.user)
    form = PartitionForm(posted(request))
    if done(request, form, lambda values: actions.create_partition(request.user, **values)):
        messages.success(
            request, f"{form.cleaned_data['title'] or form.cleaned_data['slug']} is there."
        )
        return redirect("partitions")
    context = {"page": "tenants", "partitions": described(request), "form": form}
    return render(request, "partitions/page.html", context, status=422 if form.errors else 200)


def described(request: Visitor) -> QuerySet[Partition]:
    """Partitions with how many nodes, devices and live jobs; other tenants are not named."""
    seen = visible_tenants(request.user)
    shared = visible_partitions(request.user).annotate(
        node_count=Count("nodes", distinct=True),
        device_count=Count("nodes__devices", distinct=True),
        live=Count("jobs", filter=live_jobs(request), distinct=True),
    )
    return shared.prefetch_related(Prefetch("tenants", seen, to_attr="seen"))


def live_jobs(request: Visitor) -> Q:
    visible = Job.objects.visible_to(request.user).values("pk")
    return ~Q(jobs__state__in=ENDED_STATES) & Q(jobs__in=visible)


@signed_in("GET", "POST")
def partition(request: Visitor, slug: str) -> HttpResponse:
    """Change a partition: its title, nodes and tenants."""
    row = access_partition(request.user, slug)
    require_admin(request.user)
    initial = PartitionChangeForm.initial_of(row)
    form = PartitionChangeForm(posted(request), initial=initial)

    def change(values: dict[str, Any]) -> None:
        title = values["title"] or row.slug
        actions.change_partition(
            request.user, row, title=title, nodes=values["nodes"], tenants=values["tenants"]
        )

    if done(request, form, change):
        nodes = count(len(form.cleaned_data["nodes"]), "node")
        messages.success(request, f"{row.title} is saved. It has {nodes} now.")
        return redirect("partitions")
    return show(request, row, form)


@signed_in("POST")
def remove(request: Visitor, slug: str) -> HttpResponse:
    """Remove a partition that no live job asks for; its nodes stay in the fleet."""
    row = access_partition(request.user, slug)
    require_admin(request.user)
    try:
        actions.remove_partition(request.user, row)
    except Refused as refusal:
        form = PartitionChangeForm(initial=PartitionChangeForm.initial_of(row))
        return show(request, row, form, refused=str(refusal))
    messages.success(request, f"{row.title} is removed; its nodes stay in the fleet.")
    return redirect("partitions")


def show(
    request: Visitor, row: Partition, form: PartitionChangeForm, refused: str = ""
) -> HttpResponse:
    context = {
        "page": "tenants",
        "partition": row,
        "live": row.jobs.live().count(),
        "form": form,
        "refused": refused,
    }
    status = 409 if refused else 422 if form.errors else 200
    return render(request, "partitions/partition.html", context, status=status)
