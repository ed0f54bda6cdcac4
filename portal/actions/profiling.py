"""Measurements of running jobs: asked for, and kept when they come.

What is asked for is a number on the job; the agent of rank 0's node is told it with the desired
state until a profile with that number has come, wherever the job is by then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from agents.protocol import Profile as MeasuredProfile
from portal.actions.locking import locked_job
from portal.actions.placing import present_placement
from portal.choices import JobState, PlacementState
from portal.events import job_changed, renew
from portal.models import Device, Job, PlacedReplica, Profile, User
from portal.refusals import Refused

AFTER = timedelta(seconds=60)
"""A job is measured of itself once it has run undisturbed for so long."""
LEAST_LEFT_S = 300.0
"""A job that says that it will soon end is not measured of itself."""
TURN = timedelta(minutes=2)
"""A node is asked of itself once in so long."""
AGAIN = timedelta(hours=1)
"""After so long a job is tried again that could not be measured, as on a crowded node."""
MOST_TRIES = 3
AT_ONCE = 100
"""The most candidates that are looked at in one turn."""
MOST_POINTS = 64
KEPT = 5
"""Profiles of one recipe that are kept."""


def ask_profile(user: User, job: Job) -> None:
    """Have a running job measured, again if it was. ``Refused`` says why it cannot be."""
    del user
    with locked_job(job.id) as locked:
        if locked.state != JobState.RUNNING:
            raise _conflict(f"Only a running job can be measured; this one is {locked.state}.")
        if locked.unprofiled:
            raise _conflict("It was submitted as one that must not be measured.")
        seat = _first_seat(locked)
        if seat is None or seat.sharers > 1:
            raise _conflict("Its replicas share devices now; it can be measured at its full size.")
        if not seat.node.able("profile"):
            raise _conflict(f"{seat.node.name} cannot: {seat.node.why_not('profile')}.")
        _ask(locked, seat, timezone.now())


def ask_due_profiles(now: datetime) -> list[int]:
    """Ask for a profile of jobs whose recipe has none; one a node at a time."""
    known = Profile.objects.filter(recipe=OuterRef("recipe"), error="")
    failed = Q(profile_asked=F("profiled"), profiled__lt=MOST_TRIES)
    candidates = (
        Job.objects.filter(
            ~Exists(known), state=JobState.RUNNING, unprofiled=False,
            running_since__lte=now - AFTER,
        )
        .filter(Q(profile_asked=0) | failed & Q(profile_asked_at__lt=now - AGAIN))
        .exclude(recipe="")
        .filter(Q(expected_s=None) | Q(expected_s__gte=F("worked_s") + LEAST_LEFT_S))
        .order_by("running_since", "id")
    )  # fmt: skip
    busy = set(
        Job.objects.filter(profile_asked_at__gt=now - TURN)
        .filter(placements__state=PlacementState.ACTIVE)
        .values_list("placements__replicas__node", flat=True)
    )
    asked: list[int] = []
    recipes: set[str] = set()
    for id in list(candidates.values_list("id", flat=True)[:AT_ONCE]):
        with locked_job(id) as job:
            seat = _first_seat(job)
            if seat is None or seat.node_id in busy or job.recipe in recipes:
                continue
            if job.state != JobState.RUNNING or seat.sharers > 1 or not seat.node.able("profile"):
                continue
            _ask(job, seat, now)
            busy.add(seat.node_id)
            recipes.add(job.recipe)
            asked.append(id)
    return asked


def keep_profile(job: Job, seat: PlacedReplica, told: MeasuredProfile) -> None:
    """Keep what an agent measured of a replica; the same number again changes nothing.

    The job's row is locked.
    """
    kinds = Device.objects.filter(node_id=seat.node_id, uid__in=seat.devices)
    values: dict[str, Any] = {
        "recipe": job.recipe,
        "node": seat.node.name,
        "device_kind": kinds.values_list("kind", flat=True).first() or "",
        "at": timezone.now(),
        "devices": max(1, len(seat.devices)),
        "points": [[p.cpus, p.pace, p.used, p.held_back] for p in told.points[:MOST_POINTS]],
        "error": told.error[:300],
        "source": told.source[:10],
    }
    for name in ("seconds", "share", "working", "cached", "read", "storage"):
        values[name] = getattr(told, name)
    Profile.objects.get_or_create(job=job, number=told.number, defaults=values)
    job.profiled = max(job.profiled, told.number)
    job.save(update_fields=["profiled"])
    if job.recipe:
        _forget_old(job.recipe)
    job_changed(job)


def _forget_old(recipe: str) -> None:
    newest: Iterable[int] = Profile.objects.filter(recipe=recipe).values_list("id", flat=True)
    old = list(newest)[KEPT:]
    if old:
        Profile.objects.filter(id__in=old).delete()


def _first_seat(job: Job) -> PlacedReplica | None:
    placement = present_placement(job)
    if placement is None or placement.state != PlacementState.ACTIVE:
        return None
    return placement.replicas.filter(rank=0).select_related("node").first()


def _ask(job: Job, seat: PlacedReplica, now: datetime) -> None:
    job.profile_asked = max(job.profile_asked, job.profiled) + 1
    job.profile_asked_at = now
    job.save(update_fields=["profile_asked", "profile_asked_at"])
    renew([seat.node_id])
    job_changed(job)


def _conflict(sentence: str) -> Refused:
    return Refused(sentence, id="conflict", conflict=True)
