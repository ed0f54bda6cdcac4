"""What if: simulations are asked for, called off and removed by admins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings
from django.core.files.base import File
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from portal.access import require_admin
from portal.actions.playing import OPEN, send_for_worker, settle
from portal.actions.uploads import MEBIBYTE
from portal.choices import Pricing, SimulationState
from portal.models import Node, Simulation, Tenant, Tier, User
from portal.refusals import Refused
from scheduler.planner import PRESETS, Sharing

MOST_WAITING = 10
MOST_DAYS = 90
MOST_NODES = 10_000
MOST_RESERVED = 2**31 - 1
POLICIES = tuple(name for name in PRESETS if not name.startswith("pool-"))
SHARED = {
    Sharing.OFF: "CPUs not shared",
    Sharing.PROPORTIONAL: "CPUs shared alike",
    Sharing.TUNE: "CPUs shared by need",
}
OF_TIER = ("rank", "promise", "preemptible")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What an admin wants to know; ``days`` or ``trace``, and what is changed."""

    title: str = ""
    days: int | None = None
    trace: File[bytes] | None = None
    strict: bool = False
    """Refuse a trace with a line that cannot be read, instead of leaving the line out."""
    policy: str = ""
    sharing: str = ""
    quota: dict[str, Any] | None = None
    tiers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Tier -> what of rank, promise (0 to 1) and preemptible is changed."""
    more_nodes: int = 0
    like_node: str = ""
    pricing: str = ""


def ask_simulation(user: User, question: Question) -> Simulation:
    """Queue a simulation; ``Refused`` names every wrong field and its remedy."""
    require_admin(user)
    wrong = _check(question)
    if wrong:
        raise Refused(wrong)
    if Simulation.objects.filter(state__in=OPEN).count() >= MOST_WAITING:
        raise Refused(
            f"{MOST_WAITING} simulations wait already; cancel one, or ask again later.",
            id="too-many",
            conflict=True,
        )
    simulation = Simulation(
        owner=user,
        title=question.title or describe(question),
        days=question.days if question.trace is None else None,
        strict=question.strict,
        policy=question.policy,
        sharing=question.sharing,
        quota=question.quota or {},
        tiers={slug: dict(changes) for slug, changes in question.tiers.items() if changes},
        more_nodes=question.more_nodes,
        like_node=question.like_node if question.more_nodes else "",
        pricing=question.pricing,
    )
    if question.trace is not None:
        simulation.filename = _file_name(question.trace)
        simulation.trace_size = question.trace.size or 0
        simulation.trace.save(f"{timezone.now():%H%M%S%f}.csv", question.trace, save=False)
    with transaction.atomic():
        simulation.save()
        transaction.on_commit(send_for_worker)
    return simulation


def _file_name(file: File[bytes]) -> str:
    # Browsers of Windows send whole paths; only the last part names the file.
    name = PurePosixPath((file.name or "").replace("\\", "/")).name
    return "".join(char for char in name if char.isprintable())[:200] or "trace"


def _check(question: Question) -> dict[str, str]:
    wrong = _check_source(question)
    if question.policy and question.policy not in POLICIES:
        wrong["policy"] = f"Choose one of: {', '.join(POLICIES)}."
    if question.sharing and question.sharing not in set(Sharing):
        wrong["sharing"] = f"Choose one of: {', '.join(Sharing)}."
    if question.pricing and question.pricing not in Pricing.values:
        wrong["pricing"] = f"Choose one of: {', '.join(Pricing.values)}."
    if not 0 <= question.more_nodes <= MOST_NODES:
        wrong["more_nodes"] = f"Between 0 and {MOST_NODES}."
    elif question.more_nodes and not Node.objects.filter(name=question.like_node).exists():
        wrong["like_node"] = "Choose a node that the new ones are like."
    quota = question.quota
    if quota and not Tenant.objects.filter(slug=quota["tenant"]).exists():
        wrong["tenant"] = f"There is no tenant {quota['tenant']!r}."
    if len(question.title) > 120:
        wrong["title"] = "At most 120 characters."
    return wrong | _check_tiers(question.tiers)


def _check_source(question: Question) -> dict[str, str]:
    if question.trace is None and question.days is None:
        return {"trace": "Choose a file, or how many of the fleet's last days to play."}
    if question.trace is None:
        right = question.days is not None and 1 <= question.days <= MOST_DAYS
        return {} if right else {"days": f"Between 1 and {MOST_DAYS}."}
    size = question.trace.size or 0
    if not size:
        return {"trace": "The file is empty; choose one with a header and a line for each job."}
    if size > settings.UPLOAD_LIMIT:
        most = settings.UPLOAD_LIMIT // MEBIBYTE
        return {"trace": f"It is larger than {most} MiB; cut it, or play it on the command line."}
    if kept_bytes() + size > settings.TRACES_LIMIT:
        return {
            "trace": f"All traces together may take {settings.TRACES_LIMIT // MEBIBYTE} MiB, and "
            f"{kept_bytes() // MEBIBYTE} MiB are taken; remove a simulation whose trace nobody "
            "needs."
        }
    return {}


def _check_tiers(tiers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    wrong = {}
    known = set(Tier.objects.values_list("slug", flat=True)) if tiers else set()
    for slug, changes in tiers.items():
        if slug not in known:
            wrong[f"tiers.{slug}"] = f"There is no tier {slug!r}."
        if unknown := set(changes) - set(OF_TIER):
            wrong[f"tiers.{slug}"] = f"No {sorted(unknown)[0]!r}; there are {', '.join(OF_TIER)}."
        if not 0.0 <= changes.get("promise", 0.0) <= 1.0:
            wrong[f"tiers.{slug}.promise"] = "Promise a fraction from 0 (none) to 1."
        if not -1000 <= changes.get("rank", 0) <= 1000:
            wrong[f"tiers.{slug}.rank"] = "Give a rank from -1000 to 1000."
    return wrong


def describe(question: Question) -> str:
    """A title for a question that was given none."""
    changes = []
    if question.policy:
        changes.append(f"policy {question.policy}")
    if question.sharing:
        changes.append(SHARED[Sharing(question.sharing)])
    if question.quota:
        changes.append(f"{question.quota['reserved']} reserved for {question.quota['tenant']}")
    changes += [f"{slug} {describe_tier(told)}" for slug, told in question.tiers.items() if told]
    if question.more_nodes:
        changes.append(f"{question.more_nodes} more like {question.like_node}")
    return (", ".join(changes) or "As it is")[:120]


def describe_tier(changes: Mapping[str, Any]) -> str:
    """What of a tier is changed, in a few words."""
    words = []
    if "promise" in changes:
        words.append(f"promises {100 * changes['promise']:g} %")
    if "rank" in changes:
        words.append(f"of rank {changes['rank']}")
    if "preemptible" in changes:
        words.append("preemptible" if changes["preemptible"] else "never preempted")
    return " and ".join(words)


def kept_bytes() -> int:
    """Bytes of uploaded traces that are kept now."""
    return Simulation.objects.aggregate(total=Sum("trace_size"))["total"] or 0


def cancel_simulation(user: User, simulation: Simulation) -> None:
    """Call a simulation off; one that has ended stays as it is."""
    require_admin(user)
    settle(simulation, SimulationState.CANCELLED)


def remove_simulation(user: User, simulation: Simulation) -> None:
    """Remove a simulation that has ended, with its trace and what it showed."""
    require_admin(user)
    gone, _ = Simulation.objects.filter(pk=simulation.pk).exclude(state__in=OPEN).delete()
    if not gone:
        raise Refused("It has not ended; cancel it first.", id="not-ended", conflict=True)
    if simulation.trace:
        simulation.trace.delete(save=False)
