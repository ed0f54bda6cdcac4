"""Submit a job: the form, its preview, and the files that are sent ahead of it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from portal.access import access_job, visible_tenants
from portal.actions.submitting import check_request, clone_request, submit_job
from portal.actions.uploads import receive_upload
from portal.choices import Remedy
from portal.drawings.figures import size
from portal.forms.submitting import JobForm, initial_of
from portal.models import Job, Tier, Upload
from portal.refusals import Refused
from portal.views.visitors import Visitor, go_to, numbered, signed_in

TONES = {Remedy.TRANSPARENT: "good", Remedy.PAUSE: "waiting", Remedy.REQUEUE: "waiting"}
USUAL_TIER = "standard"


@signed_in("GET", "POST")
def submit(request: Visitor) -> HttpResponse:
    """The form of a new job; ``?clone=12`` fills it in from a job."""
    cloned = clone_of(request)
    if request.method == "POST":
        form = JobForm(with_upload(request), user=request.user)
        if form.is_valid():
            try:
                job = submit_job(request.user, form.to_request(cloned))
            except Refused as refusal:
                form.refuse(refusal)
            else:
                messages.success(request, f"Job {job.id} is queued.")
                return go_to(request, reverse("job", args=[job.id]))
    else:
        initial = initial_of(clone_request(request.user, cloned)) if cloned else first_values()
        form = JobForm(user=request.user, initial=initial)
    status = 422 if request.method == "POST" else 200
    return render(request, "jobs/submit.html", describe_form(request, form, cloned), status=status)


def clone_of(request: Visitor) -> Job | None:
    number = numbered(request, "clone", 0)
    return access_job(request.user, number) if number else None


def first_values() -> dict[str, Any]:
    return {"tier": USUAL_TIER} if Tier.objects.filter(slug=USUAL_TIER).exists() else {}


def with_upload(request: Visitor) -> Any:
    """The posted fields; a file that came along (without scripts) is kept and named by its id."""
    data = request.POST.copy()
    file = request.FILES.get("file")
    if file is not None:
        try:
            data["upload"] = str(receive_upload(request.user, file).pk)
        except Refused as refusal:
            messages.error(request, str(refusal))
    return data


def describe_form(request: Visitor, form: JobForm, cloned: Job | None) -> dict[str, Any]:
    id = form["upload"].value()
    upload = Upload.objects.filter(pk=id).first() if str(id or "").isdigit() else None
    known = upload is not None and (
        upload.owner_id == request.user.pk or bool(cloned and cloned.upload_id == upload.pk)
    )
    return {
        "page": "submit",
        "form": form,
        "cloned": cloned,
        "upload": upload if known else None,
        "tenants": visible_tenants(request.user).exists(),
        "advanced": any(name in form.errors for name in ADVANCED),
    }


ADVANCED = ("device_kind", "device_memory", "cpus_per_replica", "memory_per_replica", "partition",
            "expected_s", "checkpoint_every_s", "retries", "tags", "internet")  # fmt: skip
"""Fields that are folded away until one of them is wrong."""


@signed_in("POST")
def check(request: Visitor) -> HttpResponse:
    """The preview beside the form: how gently the job can be moved, and what its quota leaves."""
    form = JobForm(request.POST, user=request.user)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        try:
            preview = check_request(request.user, form.to_request())
        except Refused as refusal:
            context["refused"] = list(refusal.fields.values())
        else:
            remedy = Remedy(preview.verdict.remedy)
            left = preview.quota_left
            context |= {
                "preview": preview,
                "remedy": remedy,
                "tone": TONES[remedy],
                "beyond": left is not None and preview.devices > left,
            }
    return render(request, "jobs/_preview.html", context)


@signed_in("POST")
def upload(request: Visitor) -> JsonResponse:
    """Take in files ahead of the form, and answer their id."""
    file = request.FILES.get("file")
    if file is None:
        return JsonResponse({"detail": "No file came with the request."}, status=400)
    try:
        kept = receive_upload(request.user, file)
    except Refused as refusal:
        return JsonResponse({"id": refusal.id, "detail": str(refusal)}, status=400)
    return JsonResponse({"upload": kept.pk, "filename": kept.filename, "size": size(kept.size)})
