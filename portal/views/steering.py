"""Acts upon a job, each with a confirmation that says what it will do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from portal.access import steer_job
from portal.actions import steering
from portal.actions.profiling import ask_profile
from portal.choices import JobState, Remedy
from portal.forms.steering import ConfirmForm, MigrateForm, ResizeForm
from portal.models import Job
from portal.refusals import Refused
from portal.views.visitors import Visitor, go_to, posted, signed_in

HELD = (JobState.STARTING, JobState.RUNNING)
LIVE = (JobState.WAITING, JobState.STARTING, JobState.RUNNING, JobState.MOVING, JobState.PAUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Something that can be asked of a job in some of its states."""

    name: str
    label: str
    icon: str
    states: tuple[JobState, ...]
    done: str
    form: type[ConfirmForm] = ConfirmForm
    danger: bool = False
    in_bar: bool = True
    """Whether it stands with the others at the top of the job's page."""


ACTS = {
    act.name: act
    for act in (
        Act(
            name="pause",
            label="Pause",
            icon="pause",
            states=(JobState.WAITING, *HELD),
            done="The job gives its devices back.",
        ),
        Act(
            name="resume",
            label="Resume",
            icon="resume",
            states=(JobState.PAUSED,),
            done="The job asks for devices again.",
        ),
        Act(
            name="checkpoint",
            label="Checkpoint now",
            icon="checkpoint",
            states=(JobState.RUNNING,),
            done="A checkpoint is being taken; the job goes on meanwhile.",
        ),
        Act(
            name="migrate",
            label="Migrate",
            icon="migrate",
            states=(JobState.RUNNING,),
            done="The job moves as soon as there is room.",
            form=MigrateForm,
        ),
        Act(
            name="resize",
            label="Resize",
            icon="resize",
            states=(JobState.RUNNING,),
            done="The job is spread anew as soon as there is room.",
            form=ResizeForm,
        ),
        Act(
            name="profile",
            label="Measure",
            icon="search",
            states=(JobState.RUNNING,),
            done="The job is being measured; what is found appears on its page.",
            in_bar=False,
        ),
        Act(
            name="cancel",
            label="Cancel",
            icon="cancel",
            states=LIVE,
            done="The job was told to stop.",
            danger=True,
        ),
    )
}


def possible_acts(job: Job) -> list[Act]:
    """What can be asked of a job as it stands."""
    acts = [act for act in ACTS.values() if act.in_bar and job.state in act.states]
    if job.fewest_devices is None:
        acts = [act for act in acts if act.name != "resize"]
    return acts


@signed_in("GET", "POST")
def steer(request: Visitor, id: int, name: str) -> HttpResponse:
    """Ask for an act: the confirmation first, then the act itself."""
    if name not in ACTS:
        raise Http404
    act, job = ACTS[name], steer_job(request.user, id)
    form = act.form(posted(request), job=job)
    if request.method == "POST" and form.is_valid():
        try:
            perform(request, act, job, form)
        except Refused as refusal:
            form.refuse(refusal)
        else:
            messages.success(request, act.done)
            return go_to(request, reverse("job", args=[id]))
    context = {
        "page": "jobs",
        "act": act,
        "job": job,
        "form": form,
        "warnings": consequences(act, job),
    }
    template = "jobs/_confirm.html" if request.htmx else "jobs/confirm.html"
    return render(request, template, context, status=422 if form.errors else 200)


def perform(request: Visitor, act: Act, job: Job, form: ConfirmForm) -> None:
    verbs: dict[str, Callable[[], object]] = {
        "pause": partial(steering.pause_job, request.user, job),
        "resume": partial(steering.resume_job, request.user, job),
        "checkpoint": partial(steering.checkpoint_job, request.user, job),
        "profile": partial(ask_profile, request.user, job),
        "cancel": partial(steering.cancel_job, request.user, job),
        "migrate": lambda: steering.migrate_job(request.user, job, form.cleaned_data["node"]),
        "resize": lambda: steering.resize_job(request.user, job, form.cleaned_data["devices"]),
    }
    verbs[act.name]()


def consequences(act: Act, job: Job) -> list[str]:
    """What an act will do to this job, in sentences."""
    transparent = job.remedy == Remedy.TRANSPARENT
    gently = "It is checkpointed and goes on at the same step; nothing is lost."
    in_place = f"It is frozen where it is and can only go on there. {job.verdict}"
    harshly = f"It starts again from the beginning. {job.verdict}"
    moved = gently if transparent else harshly
    match act.name:
        case "pause":
            still = {Remedy.TRANSPARENT: gently, Remedy.PAUSE: in_place}.get(Remedy(job.remedy))
            kept = still or harshly
            return [kept] if job.state != JobState.WAITING else ["It keeps waiting until resumed."]
        case "resume":
            return ["It queues for devices and goes on where it was."]
        case "checkpoint":
            return ["Its replicas stand still for the moment of the cut, then go on."]
        case "profile":
            return [
                "For some seconds at a time it gets fewer CPUs, and more where some are idle, and "
                "its pace is compared. Its results stay the same.",
            ]
        case "migrate" | "resize":
            return [moved, "It keeps running until there is room for it."]
        case _:
            ends = "It can't be resumed." if job.started_at else "It never starts."
            return [
                f"It stops and gives up its devices. {ends}",
                "Its output so far stays readable.",
            ]
