"""Simulations are claimed by whoever plays them, one at a time, and settled or given up."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from kombu.exceptions import OperationalError

from portal.choices import SimulationState
from portal.events import simulation_changed
from portal.models import Simulation

SILENT_FOR = timedelta(seconds=90)
"""A running simulation that told nothing for so long has lost its worker."""
MOST_ATTEMPTS = 2
OPEN = (SimulationState.QUEUED, SimulationState.RUNNING)


def claim_next() -> Simulation | None:
    """Take the oldest simulation that waits, unless one runs already."""
    with transaction.atomic():
        if Simulation.objects.filter(state=SimulationState.RUNNING).exists():
            return None
        found = Simulation.objects.filter(state=SimulationState.QUEUED).order_by("id").first()
        now = timezone.now()
        taken = found and Simulation.objects.filter(
            pk=found.pk, state=SimulationState.QUEUED
        ).update(
            state=SimulationState.RUNNING,
            started_at=now,
            heard_at=now,
            attempts=F("attempts") + 1,
            share=0.0,
        )
        if not found or not taken:
            return None
        found.refresh_from_db()
        simulation_changed(found)
        return found


def note_progress(simulation: Simulation, share: float) -> bool:
    """Keep how far it is; false when it was called off, or given to another worker, meanwhile."""
    simulation.share = min(1.0, share)
    present = Simulation.objects.filter(
        pk=simulation.pk, state=SimulationState.RUNNING, attempts=simulation.attempts
    )
    if not present.update(share=simulation.share, heard_at=timezone.now()):
        return False
    simulation_changed(simulation)
    return True


def settle(simulation: Simulation, state: SimulationState, **results: Any) -> bool:
    """End a simulation that is not ended yet, with what came of it; whether it was.

    Only whoever holds it now can: the worker of an earlier attempt changes nothing.
    """
    with transaction.atomic():
        present = Simulation.objects.filter(pk=simulation.pk, state__in=OPEN)
        if state != SimulationState.CANCELLED:
            present = present.filter(attempts=simulation.attempts)
        ended = present.update(state=state, ended_at=timezone.now(), **results)
        if ended:
            simulation.refresh_from_db()
            simulation_changed(simulation)
    return bool(ended)


def give_up_silent(now: datetime) -> None:
    """Queue those whose worker has gone once more, and send for a worker where some wait."""
    running = Simulation.objects.filter(state=SimulationState.RUNNING)
    for simulation in running.filter(heard_at__lt=now - SILENT_FOR):
        if simulation.attempts >= MOST_ATTEMPTS:
            told = f"The worker that ran it was lost {MOST_ATTEMPTS} times; ask for less."
            settle(simulation, SimulationState.FAILED, detail=told)
        elif running.filter(pk=simulation.pk, attempts=simulation.attempts).update(
            state=SimulationState.QUEUED, share=0.0
        ):
            simulation.refresh_from_db()
            simulation_changed(simulation)
    waiting = Simulation.objects.filter(state=SimulationState.QUEUED)
    if waiting.exists() and not running.exists():
        send_for_worker()


def forget_traces(now: datetime) -> int:
    """Remove the uploaded traces of simulations that ended long ago; what they showed stays."""
    before = now - timedelta(days=settings.TRACES_KEPT)
    old = list(Simulation.objects.filter(ended_at__lt=before).exclude(trace="").only("trace"))
    for simulation in old:
        simulation.trace.delete(save=False)
        Simulation.objects.filter(pk=simulation.pk).update(trace="", trace_size=0)
    return len(old)


def send_for_worker() -> None:
    """Have a worker look for a simulation that waits; housekeeping does so again each minute."""
    try:
        current_app.send_task("scheduler.tasks.simulate", queue="work", ignore_result=True)
    except (OperationalError, OSError):
        return
