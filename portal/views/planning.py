"""How the fleet is planned: the policy in force, the sharing of CPUs, and measuring; for admins."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import HttpResponse
from django.shortcuts import redirect, render

from portal.access import require_admin
from portal.actions.planning import environment_policy, policy_in_force, set_policy
from portal.choices import JobState, PlacementState
from portal.forms.planning import PROFILING_TOLD, SHARING_TOLD, SWITCHES, PolicyForm
from portal.models import AuditEntry, Job, Node, PlacedReplica, Profile, Settings
from portal.views.doing import done
from portal.views.visitors import Visitor, posted, signed_in

ENTRIES = 6


@signed_in("GET", "POST")
def policy(request: Visitor) -> HttpResponse:
    """What is in force, what it does now, and the form to change it."""
    require_admin(request.user)
    row = Settings.objects.filter(pk=1).first() or Settings()
    form = PolicyForm(posted(request), initial=PolicyForm.initial_of(row))
    if done(
        request,
        form,
        lambda values: set_policy(request.user, values["policy"], form.to_changes(row)),
    ):
        messages.success(request, "Saved. It holds from the next cycle on, in about two seconds.")
        return redirect("policy")
    trail = AuditEntry.objects.filter(act="policy set").select_related("actor")[:ENTRIES]
    context = {
        "page": "tenants",
        "form": form,
        "row": row,
        "trail": trail,
        "sharing": told(form, "sharing", {each.value: t[1] for each, t in SHARING_TOLD.items()}),
        "profiling": told(form, "profiling", {word: t[1] for word, t in PROFILING_TOLD.items()}),
        **describe(row),
    }
    return render(request, "planning/page.html", context, status=422 if form.errors else 200)


def told(form: PolicyForm, name: str, words: dict[str, str]) -> list[tuple[Any, str]]:
    """Each radio button with what it does."""
    return [(radio, words.get(str(radio.data["value"]), "")) for radio in form[name]]


def describe(row: Settings) -> dict[str, Any]:
    """The policy in force and what its switches do at this moment, in counts."""
    now, usual = policy_in_force(), environment_policy(row.policy)
    known = Profile.objects.filter(error="", recipe=OuterRef("recipe"))
    running = Job.objects.filter(state=JobState.RUNNING)
    nodes = Node.objects.filter(lost_at=None).exclude(heard_at=None)
    seats = PlacedReplica.objects.filter(placement__state=PlacementState.ACTIVE, cpus__gt=0)
    return {
        "now": now,
        "shared": SHARING_TOLD[now.sharing],
        "chosen": {name: name in row.changes for name in SWITCHES},
        "others": sorted(
            (name, getattr(now, name), getattr(usual, name))
            for name in row.changes
            if name not in SWITCHES
        ),
        "running": running.count(),
        "measured": running.exclude(recipe="").filter(Exists(known)).count(),
        "allotted": seats.values("placement").distinct().count(),
        "nodes": nodes.count(),
        "able": nodes.filter(abilities__profile__able=True).count(),
    }
