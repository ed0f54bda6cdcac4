"""A new job: checked against quota, limits and what the fleet has, then queued."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from portal.actions.limits import Limits, check_fleet, check_quota
from portal.actions.output import clear_output
from portal.actions.verdicts import Verdict, judge
from portal.choices import JobState
from portal.events import job_changed, wake
from portal.gains import recipe_of
from portal.models import Job, Node, Partition, Tenant, Tier, Upload, User
from portal.refusals import Refused
from portal.sealing import SealError, seal

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
GIT = re.compile(r"(https?|ssh)://[^\s]+\Z|git@[^\s:]+:[^\s]+\Z")
MOST_REPLICAS = 4096
MOST_VARIABLES = 200
MOST_BYTES = 64 * 1024
DEMAND = (
    "replicas", "gpus_per_replica", "fewest_devices", "device_kind", "device_memory",
    "cpus_per_replica", "memory_per_replica",
)  # fmt: skip
"""What of a request decides where it fits."""
SAME = (
    *DEMAND, "git", "ref", "expected_s", "tags", "retries", "checkpoint_every_s", "internet",
    "unprofiled",
)  # fmt: skip
"""What a job keeps of a request as it is."""


@dataclass(kw_only=True)
class JobRequest:
    """What a user asks for. Sizes in bytes, times in seconds."""

    tenant: str
    tier: str
    command: list[str]
    name: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    upload: Upload | None = None
    git: str = ""
    ref: str = ""
    replicas: int = 1
    gpus_per_replica: int = 1
    fewest_devices: int | None = None
    device_kind: str = ""
    device_memory: int = 0
    cpus_per_replica: float = 0.0
    memory_per_replica: int = 0
    partition: str = ""
    expected_s: float | None = None
    tags: list[str] = field(default_factory=list)
    retries: int = 0
    checkpoint_every_s: int | None = None
    internet: bool = False
    unprofiled: bool = False
    cloned_from: Job | None = None


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What would become of a request."""

    verdict: Verdict
    devices: int
    quota_left: int | None
    """Devices that the tenant may still use, borrowing included; None: no limit."""


def check_request(user: User, request: JobRequest) -> Preview:
    """Say what would become of a request. ``Refused`` names every wrong field and its remedy."""
    checked = _Desk(user).check(request)
    return Preview(
        verdict=checked.verdict,
        devices=request.replicas * request.gpus_per_replica,
        quota_left=checked.limits.left,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """A request that nothing speaks against, and the rows that it names."""

    tenant: Tenant
    tier: Tier
    partition: Partition | None
    limits: Limits
    verdict: Verdict


class _Desk:
    """Where a user's requests are checked; what several of them have in common is seen once."""

    def __init__(self, user: User) -> None:
        self.user = user
        self._known: dict[tuple[Any, ...], Any] = {}

    def check(self, request: JobRequest) -> _Checked:
        tenant, tier, partition = self._once(
            ("rows", request.tenant, request.tier, request.partition),
            lambda: _resolve(self.user, request),
        )
        wrong = _check_words(request) | _check_numbers(request)
        if wrong:
            raise Refused(wrong)
        kind = request.device_kind
        limits = self._once(("limits", tenant.pk, kind), lambda: Limits.of(tenant, kind))
        check_quota(limits, request.fewest_devices or request.replicas * request.gpus_per_replica)
        demand = tuple(getattr(request, name) for name in DEMAND)
        verdict = self._once(
            ("fleet", tenant.pk, partition and partition.pk, *demand),
            lambda: _verdict(check_fleet(request, tenant, partition), request),
        )
        return _Checked(
            tenant=tenant, tier=tier, partition=partition, limits=limits, verdict=verdict
        )

    def _once(self, key: tuple[Any, ...], find: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]


def _verdict(nodes: list[Node], request: JobRequest) -> Verdict:
    on_gpus = request.device_kind not in ("", "cpu", "fake")
    verdicts = [judge([node], replicas=request.replicas, on_gpus=on_gpus) for node in nodes]
    order = ["requeue", "pause", "transparent"]
    # The worst of the nodes it may land on: a promise must hold wherever it is placed.
    return min(
        verdicts, key=lambda verdict: order.index(verdict.remedy), default=judge([], replicas=1)
    )


def _resolve(user: User, request: JobRequest) -> tuple[Tenant, Tier, Partition | None]:
    wrong: dict[str, str] = {}
    tenants = Tenant.objects.all()
    if not user.is_admin:
        tenants = tenants.filter(memberships__user=user)
    tenant = tenants.filter(slug=request.tenant).order_by().first()
    if tenant is None:
        own = ", ".join(tenants.values_list("slug", flat=True)[:12]) or "none; ask an admin"
        wrong["tenant"] = f"You do not belong to a tenant {request.tenant!r}. Yours: {own}."
    tier = Tier.objects.filter(slug=request.tier).order_by().first()
    if tier is None:
        known = ", ".join(Tier.objects.values_list("slug", flat=True))
        wrong["tier"] = f"There is no tier {request.tier!r}. Choose one of: {known}."
    partition = None
    if request.partition:
        partition = Partition.objects.filter(slug=request.partition).first()
        if partition is None:
            wrong["partition"] = f"There is no {request.partition!r}; leave it empty for any."
    if wrong or tenant is None or tier is None:
        raise Refused(wrong)
    return tenant, tier, partition


def _check_words(request: JobRequest) -> dict[str, str]:
    wrong: dict[str, str] = {}
    if not request.command or not request.command[0].strip():
        wrong["command"] = "Say which command to run, e.g. python train.py."
    elif any("\0" in word for word in request.command):
        wrong["command"] = "The command must not contain NUL characters."
    elif sum(map(len, request.command)) > MOST_BYTES:
        wrong["command"] = "The command is longer than 64 KiB; put it in a script of the source."
    for title, variables in (("environment", request.environment), ("secrets", request.secrets)):
        bad = next((name for name in variables if not NAME.match(name)), None)
        if bad is not None:
            wrong[title] = f"{bad!r} is not a variable's name: use letters, digits and _."
        elif len(variables) > MOST_VARIABLES or sum(map(len, variables.values())) > MOST_BYTES:
            wrong[title] = "At most 200 variables and 64 KiB; put more into a file of the source."
        elif any("\0" in value for value in variables.values()):
            wrong[title] = "Values must not contain NUL characters."
    if request.git and request.upload:
        wrong["git"] = "Give either a git URL or an upload, not both."
    elif request.git and not GIT.match(request.git):
        wrong["git"] = "Use an https://, http:// or ssh:// URL, or git@host:path."
    if request.ref and (request.ref.startswith("-") or not request.git):
        wrong["ref"] = "Name a branch, tag or commit of the git URL."
    if len(request.name) > 120:
        wrong["name"] = "At most 120 characters."
    if len(request.tags) > 20 or any(not tag or len(tag) > 60 for tag in request.tags):
        wrong["tags"] = "At most 20 tags of 1 to 60 characters."
    return wrong


def _check_numbers(request: JobRequest) -> dict[str, str]:
    wrong: dict[str, str] = {}
    if not 1 <= request.replicas <= MOST_REPLICAS:
        wrong["replicas"] = f"Between 1 and {MOST_REPLICAS}."
    if not 1 <= request.gpus_per_replica <= 64:
        wrong["gpus_per_replica"] = "Between 1 and 64; a cpu device counts as one."
    full = request.replicas * request.gpus_per_replica
    if request.fewest_devices is not None and not 1 <= request.fewest_devices <= full:
        wrong["fewest_devices"] = f"Between 1 and the full size, {full}."
    for name, least, most in (
        ("cpus_per_replica", 0, 4096), ("memory_per_replica", 0, 2**46),
        ("device_memory", 0, 2**42),
        ("retries", 0, 100), ("checkpoint_every_s", 0, 30 * 86400), ("expected_s", 1, 366 * 86400),
    ):  # fmt: skip
        value = getattr(request, name)
        if value is not None and not least <= value <= most:
            wrong[name] = f"Between {least} and {most}."
    if 0 < request.memory_per_replica < 16 * 2**20:
        wrong["memory_per_replica"] = "A replica needs at least 16 MiB; 0 means no limit."
    if request.checkpoint_every_s and request.checkpoint_every_s < 10:
        wrong["checkpoint_every_s"] = "At least 10 s apart; 0 means never."
    return wrong


def submit_job(user: User, request: JobRequest) -> Job:
    """Queue a job. ``Refused`` names every wrong field and its remedy; nothing is kept then."""
    (job,) = _queue(user, [(request, _Desk(user).check(request))])
    return job


def submit_jobs(user: User, requests: Sequence[JobRequest]) -> list[Job]:
    """Queue jobs, all of them or none.

    ``Refused`` names wrong fields after the place of their job, the first being 0: ``3.replicas``.
    """
    desk = _Desk(user)
    checked: list[tuple[JobRequest, _Checked]] = []
    wrong: dict[str, str] = {}
    ids = set()
    for place, request in enumerate(requests):
        try:
            checked.append((request, desk.check(request)))
        except Refused as refusal:
            ids.add(refusal.id)
            for name, sentence in refusal.fields.items():
                wrong[f"{place}.{name}" if name else str(place)] = sentence
    if wrong:
        raise Refused(wrong, id=ids.pop() if len(ids) == 1 else "invalid")
    return _queue(user, checked)


def _queue(user: User, checked: Sequence[tuple[JobRequest, _Checked]]) -> list[Job]:
    """Write the jobs; pages are told of one of each tenant, and look at all."""
    now = timezone.now()
    with transaction.atomic():
        jobs = Job.objects.bulk_create(_job(user, *pair, now) for pair in checked)
        for job in jobs:
            clear_output(job.id)
        for job in {job.tenant_id: job for job in jobs}.values():
            job_changed(job)
        wake()
    return jobs


def _job(user: User, request: JobRequest, checked: _Checked, now: datetime) -> Job:
    job = Job(
        name=request.name or default_name(request),
        tenant=checked.tenant,
        owner=user,
        tier=checked.tier,
        partition=checked.partition,
        command=request.command,
        environment=request.environment,
        sealed_secrets=seal(request.secrets),
        state=JobState.WAITING,
        remedy=checked.verdict.remedy,
        verdict=checked.verdict.reason,
        submitted_at=now,
        waiting_since=now,
        accounted_at=now,
        **{name: getattr(request, name) for name in (*SAME, "upload", "cloned_from")},
    )
    job.recipe = recipe_of(job)
    return job


def default_name(request: JobRequest) -> str:
    """A name from the command, for those who gave none."""
    words = [word for word in request.command if not word.startswith("-")]
    return shlex.join(words[:2])[:120] or "job"


def clone_request(user: User, job: Job) -> JobRequest:
    """The request that would submit the same job again; secrets only for the one who gave them."""
    request = JobRequest(
        tenant=job.tenant.slug,
        tier=job.tier.slug,
        command=list(job.command),
        partition=job.partition.slug if job.partition else "",
        upload=job.upload,
        cloned_from=job,
        secrets=_own_secrets(user, job),
    )
    same = ("name", "environment", *SAME)
    return replace(request, **{name: getattr(job, name) for name in same})


def _own_secrets(user: User, job: Job) -> dict[str, str]:
    if job.owner_id != user.pk:
        return {}
    try:
        return job.secrets
    except SealError as error:
        raise Refused(str(error), id="secrets-sealed", conflict=True) from error
