"""What the planner says to questions: fragments that pages fetch after they are shown.

Each waits for the planner for a few seconds at most, and says little when it has no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache

from portal.access import access_job, access_node, access_tenant, require_admin
from portal.actions.asking import ask, ask_again, question_of
from portal.choices import JobState
from portal.drawings.figures import count, span
from portal.forms.submitting import JobForm
from portal.forms.tenants import QuotaForm
from portal.models import Job, User
from portal.refusals import Refused
from portal.views.quotas import quota_of
from portal.views.visitors import Visitor, signed_in

EFFECTS = {
    "pushed_off": ("preempt", "would be pushed off"),
    "moved": ("migrate", "would be moved"),
    "resized": ("resize", "would be resized"),
    "waits": ("waiting", "would wait longer"),
    "starts": ("running", "would start at once"),
}
NAMED = 6
"""Jobs that are named one by one; of the others only the number is told."""
STOP_POLLING = 286


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What would become of some jobs."""

    icon: str
    words: str
    jobs: list[Job]
    """Those of them that the user may see, the first few."""
    others: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """When a job is expected to start: a moment within a band, None beyond a week."""

    earliest: datetime | None
    likely: datetime | None
    latest: datetime | None
    at_once: bool
    sentence: str


def start_of(answer: Mapping[str, Any]) -> Start:
    """An answer's seconds from now as moments."""
    now = timezone.now()

    def moment(name: str) -> datetime | None:
        seconds = answer[name]
        return None if seconds is None else now + timedelta(seconds=seconds)

    return Start(
        earliest=moment("earliest_s"),
        likely=moment("likely_s"),
        latest=moment("latest_s"),
        at_once=answer["likely_s"] == 0,
        sentence=answer["sentence"],
    )


def effects_of(user: User, answer: Mapping[str, Any]) -> list[Effect]:
    """What an answer says of other jobs; those that the user may not see are only counted."""
    ids = {kind: list(answer.get(kind, ())) for kind in EFFECTS}
    first = [id for found in ids.values() for id in found[:NAMED]]
    seen = Job.objects.visible_to(user).in_bulk(first) if first else {}
    effects = []
    for kind, (icon, words) in EFFECTS.items():
        jobs = [seen[id] for id in ids[kind][:NAMED] if id in seen]
        if ids[kind]:
            said = f"{count(len(ids[kind]), 'job')} {words}"
            others = len(ids[kind]) - len(jobs)
            effects.append(Effect(icon=icon, words=said, jobs=jobs, others=others))
    return effects


@never_cache
@signed_in()
def start(request: Visitor, id: int) -> HttpResponse:
    """When a waiting job is expected to start; empty for any other."""
    job = access_job(request.user, id)
    if job.state != JobState.WAITING:
        return HttpResponse(status=STOP_POLLING)
    try:
        answer = ask({"question": "start", "job": job.id})
    except Refused:
        return HttpResponse()
    return render(request, "jobs/_start.html", {"start": start_of(answer)})


@never_cache
@signed_in("POST")
def submission(request: Visitor) -> HttpResponse:
    """When the job in the form would start, and what it would displace."""
    form = JobForm(request.POST, user=request.user)
    if not form.is_valid():
        return HttpResponse()
    try:
        question = question_of(request.user, form.to_request())
    except Refused:
        return HttpResponse()  # the preview beside it says why
    try:
        answer = ask_again(question)
    except Refused as refusal:
        return render(request, "jobs/_submission.html", {"refused": str(refusal)})
    context = {"start": start_of(answer), "effects": effects_of(request.user, answer)}
    return render(request, "jobs/_submission.html", context)


@never_cache
@signed_in()
def drain(request: Visitor, name: str) -> HttpResponse:
    """What draining a node would do at once, by the planner."""
    require_admin(request.user)
    node = access_node(request.user, name)
    try:
        answer = ask({"question": "drain", "nodes": [node.name]})
    except Refused as refusal:
        return render(request, "nodes/_drain.html", {"refused": str(refusal)})
    there = set(answer["running_there"])
    elsewhere = {kind: [id for id in answer[kind] if id not in there] for kind in EFFECTS}
    context = {"story": tell_drain(answer), "effects": effects_of(request.user, elsewhere)}
    return render(request, "nodes/_drain.html", {"node": node, **context})


def tell_drain(answer: Mapping[str, Any]) -> str:
    """One sentence: how many jobs move, for how long each, and which stop or stay."""
    there = set(answer["running_there"])
    if not there:
        return "no job runs there, so nothing moves."
    moving = there & {*answer["moved"], *answer["resized"]}
    stopping = there & set(answer["pushed_off"])
    staying = there - moving - stopping
    each = [s for id, s in answer["seconds_each"].items() if int(id) in moving]
    said = []
    if moving:
        told = f"{count(len(moving), 'job')} {'moves' if len(moving) == 1 else 'move'} at once"
        said.append(told + (f", about {span(median(each))} each" if each else ""))
    if staying:
        stays = "stays" if len(staying) == 1 else "stay"
        said.append(f"{count(len(staying), 'job')} {stays} until there is room elsewhere")
    if stopping:
        stops = "stops and queues" if len(stopping) == 1 else "stop and queue"
        said.append(f"{count(len(stopping), 'job')} {stops} again")
    else:
        said.append("none stops")
    return "; ".join(said) + "."


@never_cache
@signed_in("POST")
def quota(request: Visitor, slug: str, id: int) -> HttpResponse:
    """What the quota in the form would change at once."""
    require_admin(request.user)
    tenant = access_tenant(request.user, slug)
    there = quota_of(tenant, id)
    form = QuotaForm(request.POST, prefix="quota")
    if not form.is_valid():
        return HttpResponse()
    values = form.cleaned_data
    question = {
        "question": "quota",
        "tenant": tenant.slug,
        "device_kind": there.device_kind if there else values["device_kind"].strip(),
        "reserved": values["reserved"],
        "borrow": values["borrow"],
        "lend": values["lend"],
    }
    try:
        answer = ask(question)
    except Refused as refusal:
        return render(request, "tenants/_effect.html", {"refused": str(refusal)})
    context = {"effects": effects_of(request.user, answer)}
    return render(request, "tenants/_effect.html", context)
