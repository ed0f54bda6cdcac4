"""What a job gains from CPUs, as its newest profile says: the matrix, a sentence, the recipe."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from portal.choices import PlacementState
from portal.drawings.figures import count
from scheduler.planner.sensitivity import Matrix, predict

if TYPE_CHECKING:
    from portal.models import Job, Profile

ENOUGH = 0.97
"""An amount with which a job makes this part of its best pace is as good as the best."""
NOTABLE = 64 << 20
"""Bytes of cached files below which nothing is said of the memory beside the working set."""


def recipe_of(job: Job) -> str:
    """A digest that jobs of one tenant share when they do the same in the same shape."""
    told = [
        job.tenant_id, job.command, job.environment, job.git, job.ref,
        job.upload.sha256 if job.upload else "",
        job.replicas, job.gpus_per_replica, job.device_kind, job.cpus_per_replica,
    ]  # fmt: skip
    return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()


def profile_of(job: Job) -> Profile | None:
    """The newest profile that tells something about a job: its own, or one of its recipe."""
    from portal.models import Profile

    if not job.recipe:
        return None
    return Profile.objects.filter(recipe=job.recipe, error="").select_related("job").first()


def matrix_of(profile: Profile) -> Matrix | None:
    """Paces by CPUs and memory for each device; ``None`` without a point.

    CPUs were measured. The memory axis is predicted: below what the job holds besides cached files
    it cannot run; with less cache it must read again what no longer fits, at the storage's speed.
    """
    each = max(1, profile.devices)
    measured = {cpus / each: pace for cpus, pace, *_ in profile.points if cpus > 0}
    if not measured:
        return None
    working, cached = profile.working / each, profile.cached / each
    amounts = [working]
    if profile.cached >= NOTABLE:
        amounts += [working + cached / 2, working + cached]
    return predict(
        measured,
        memory=amounts,
        working_memory=working,
        dataset=cached,
        epoch_s=profile.cached / profile.read if profile.read > 0 else float("inf"),
        storage=max(1.0, profile.storage / each),
    )


def sentence_of(profile: Profile) -> str:
    """What the measured points say, in words."""
    if profile.error:
        return profile.error
    paces = {cpus: pace for cpus, pace, *_ in profile.points}
    if not paces:
        return "Nothing was measured."
    share, least = profile.share, min(paces)
    enough = min(cpus for cpus, pace in paces.items() if pace >= ENOUGH * max(paces.values()))

    def told(cpus: float) -> str:
        return f"{_percent(paces[cpus])} of its speed with {_percent(cpus / share)} of its CPUs"

    if enough > share:
        return (
            f"This job would be {_percent(paces[enough] - 1)} faster with {_cpus(enough)} a "
            f"replica than with its share of {share:g}."
        )
    if enough < share:
        steeper = f", {_percent(paces[least])} with {_percent(least / share)}"
        more = steeper if least < enough else ""
        return f"This job gains nothing beyond {_cpus(enough)} a replica: {told(enough)}{more}."
    if least == share:
        return f"Its share is {_cpus(share)} a replica; less was too little to measure."
    return f"This job needs its whole share of {_cpus(share)} a replica: {told(least)}."


def plain(profile: Profile) -> Mapping[str, Any]:
    """A profile with its matrix, for the API. Sizes in bytes, per device."""
    matrix = matrix_of(profile)
    return {
        "job": profile.job_id,
        "number": profile.number,
        "at": profile.at,
        "node": profile.node,
        "device_kind": profile.device_kind,
        "source": profile.source,
        "seconds": profile.seconds,
        "share": profile.share,
        "sentence": sentence_of(profile),
        "error": profile.error,
        "points": [
            dict(zip(("cpus", "pace", "used", "held_back"), point, strict=True))
            for point in profile.points
        ],
        "matrix": None
        if matrix is None
        else {
            "cpus": list(matrix.cpus),
            "memory": [int(amount) for amount in matrix.memory],
            "paces": [[round(pace, 4) for pace in row] for row in matrix.paces],
        },
    }


def known_of(job: Job) -> dict[str, Any]:
    """Where measuring a job stands, without what was measured."""
    seats = job.placements.filter(state=PlacementState.ACTIVE, replicas__rank=0)
    allotted = seats.values_list("replicas__cpus", flat=True).first()
    newest = job.profiles.first()
    return {
        "asked": job.profile_asked > job.profiled and not job.ended,
        "unprofiled": job.unprofiled,
        "cpus": allotted or None,
        "last_error": newest.error if newest else "",
    }


def _cpus(amount: float) -> str:
    return count(amount, "CPU")


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"
