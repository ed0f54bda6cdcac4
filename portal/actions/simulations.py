"""What if: simulations are asked for, called off, claimed by whoever runs them, and settled."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.files.base import File
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from portal.access import require_admin
from portal.actions.uploads import TooLarge
from portal.choices import SimulationState
from portal.events import simulation_changed
from portal.models import Node, Simulation, Tenant, User
from portal.refusals import Refused
from scheduler.planner import PRESETS

MOST_WAITING = 10
MOST_DAYS = 90
MOST_NODES = 10_000
SILENT_FOR = timedelta(seconds=90)
"""A running simulation that told nothing for so long has lost its worker."""
OPEN = (SimulationState.QUEUED, SimulationState.RUNNING)
POLICIES = tuple(name for name in PRESETS if not name.startswith("pool-"))


@dataclass(frozen=True, kw_only=True)
class Question:
    """What an admin wants to know; ``days`` or ``trace``, and what is changed."""

    title: str = ""
    days: int | None = None
    trace: File[bytes] | None = None
    policy: str = ""
    quota: dict[str, Any] | None = None
    more_nodes: int = 0
    like_node: str = ""


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
        days=question.days,
        policy=question.policy,
        quota=question.quota or {},
        more_nodes=question.more_nodes,
        like_node=question.like_node if question.more_nodes else "",
    )
    if question.trace is not None:
        simulation.filename = PurePosixPath((question.trace.name or "").replace("\\", "/")).name
        simulation.trace.save(f"{timezone.now():%H%M%S%f}.csv", question.trace, save=False)
    with transaction.atomic():
        simulation.save()
        transaction.on_commit(send_for_worker)
    return simulation


def _check(question: Question) -> dict[str, str]:
    wrong: dict[str, str] = {}
    if question.trace is None and question.days is None:
        wrong["trace"] = "Choose a file, or how many of the fleet's last days to play."
    elif question.trace is not None and (question.trace.size or 0) > settings.UPLOAD_LIMIT:
        wrong |= TooLarge("trace", settings.UPLOAD_LIMIT).fields
    if question.days is not None and not 1 <= question.days <= MOST_DAYS:
        wrong["days"] = f"Between 1 and {MOST_DAYS}."
    if question.policy and question.policy not in POLICIES:
        wrong["policy"] = f"Choose one of: {', '.join(POLICIES)}."
    if not 0 <= question.more_nodes <= MOST_NODES:
        wrong["more_nodes"] = f"Between 0 and {MOST_NODES}."
    elif question.more_nodes and not Node.objects.filter(name=question.like_node).exists():
        wrong["like_node"] = "Choose a node that the new ones are like."
    quota = question.quota
    if quota and not Tenant.objects.filter(slug=quota["tenant"]).exists():
        wrong["tenant"] = f"There is no tenant {quota['tenant']!r}."
    if len(question.title) > 120:
        wrong["title"] = "At most 120 characters."
    return wrong


def describe(question: Question) -> str:
    """A title for a question that was given none."""
    changes = []
    if question.policy:
        changes.append(f"policy {question.policy}")
    if question.quota:
        changes.append(f"{question.quota['reserved']} reserved for {question.quota['tenant']}")
    if question.more_nodes:
        changes.append(f"{question.more_nodes} more like {question.like_node}")
    return (", ".join(changes) or "As it is")[:120]


def cancel_simulation(user: User, simulation: Simulation) -> None:
    """Call a simulation off; one that has ended stays as it is."""
    require_admin(user)
    settle(simulation, SimulationState.CANCELLED)


def claim_next() -> Simulation | None:
    """Take the oldest simulation that waits, unless one runs already."""
    with transaction.atomic():
        if Simulation.objects.filter(state=SimulationState.RUNNING).exists():
            return None
        found = Simulation.objects.filter(state=SimulationState.QUEUED).order_by("id").first()
        now = timezone.now()
        taken = found and Simulation.objects.filter(
            pk=found.pk, state=SimulationState.QUEUED
        ).update(state=SimulationState.RUNNING, started_at=now, heard_at=now)
        if not found or not taken:
            return None
        found.refresh_from_db()
        simulation_changed(found)
        return found


def note_progress(simulation: Simulation, share: float) -> bool:
    """Keep how far it is; false when it was called off meanwhile."""
    simulation.share = min(1.0, share)
    present = Simulation.objects.filter(pk=simulation.pk, state=SimulationState.RUNNING)
    if not present.update(share=simulation.share, heard_at=timezone.now()):
        return False
    simulation_changed(simulation)
    return True


def settle(simulation: Simulation, state: SimulationState, **results: Any) -> bool:
    """End a simulation that is not ended yet, with what came of it; whether it was."""
    with transaction.atomic():
        ended = Simulation.objects.filter(pk=simulation.pk, state__in=OPEN).update(
            state=state, ended_at=timezone.now(), **results
        )
        if ended:
            simulation.refresh_from_db()
            simulation_changed(simulation)
    return bool(ended)


def give_up_silent(now: datetime) -> None:
    """End simulations whose worker has gone, and send for a worker where some wait."""
    running = Simulation.objects.filter(state=SimulationState.RUNNING)
    for simulation in running.filter(heard_at__lt=now - SILENT_FOR):
        settle(
            simulation, SimulationState.FAILED, detail="The worker that ran it has gone; ask again."
        )
    waiting = Simulation.objects.filter(state=SimulationState.QUEUED)
    if waiting.exists() and not running.exists():
        send_for_worker()


def send_for_worker() -> None:
    """Have a worker look for a simulation that waits; housekeeping does so again each minute."""
    try:
        current_app.send_task("scheduler.tasks.simulate", queue="work", ignore_result=True)
    except (OperationalError, OSError):
        return
