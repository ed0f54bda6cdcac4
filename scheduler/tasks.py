"""Celery's entry points."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from django.conf import settings

from scheduler.live.asking import answer_to
from scheduler.live.housekeeping import keep_house
from scheduler.live.sampling import sample_jobs
from scheduler.live.simulating import run_next
from scheduler.live.turns import take_turn, take_turn_in


@shared_task(name="scheduler.tasks.cycle")
def cycle() -> None:
    """Plan because something changed."""
    take_turn(reconciling=False)


@shared_task(name="scheduler.tasks.cycle_in")
def cycle_in(cluster: str) -> None:
    """Place what was sent to the planner of a cluster."""
    take_turn_in(cluster)


@shared_task(name="scheduler.tasks.tick")
def tick() -> None:
    """Plan because time has passed, and settle what no report has settled."""
    take_turn(reconciling=True)


@shared_task(name="scheduler.tasks.housekeep")
def housekeep() -> None:
    """Collect garbage, keep samples, forget what is old."""
    keep_house()


@shared_task(name="scheduler.tasks.sample")
def sample() -> None:
    """Keep what running jobs make of their devices."""
    sample_jobs()


@shared_task(name="scheduler.tasks.ask")
def ask(key: str, question: dict[str, Any]) -> None:
    """Answer a question about the fleet; what nobody waits for any more expires unasked."""
    answer_to(key, question)


@shared_task(name="scheduler.tasks.simulate", soft_time_limit=settings.SIMULATION_LIMIT + 300)
def simulate() -> None:
    """Play the next simulation that was asked for, one at a time."""
    run_next()
