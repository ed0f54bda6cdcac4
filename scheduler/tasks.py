"""Celery's entry points."""

from __future__ import annotations

from celery import shared_task

from scheduler.live.housekeeping import keep_house
from scheduler.live.turns import take_turn


@shared_task(name="scheduler.tasks.cycle")
def cycle() -> None:
    """Plan because something changed."""
    take_turn(reconciling=False)


@shared_task(name="scheduler.tasks.tick")
def tick() -> None:
    """Plan because time has passed, and settle what no report has settled."""
    take_turn(reconciling=True)


@shared_task(name="scheduler.tasks.housekeep")
def housekeep() -> None:
    """Collect garbage, keep samples, forget what is old."""
    keep_house()
