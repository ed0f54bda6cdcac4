"""Several processes at once: one cycle at a time, one placement a job, nothing promised twice."""

from __future__ import annotations

import socket
import subprocess
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.utils import timezone

from portal.actions.settling import settle
from portal.actions.steering import cancel_job, pause_job
from portal.models import Job, Lease, PlacedReplica, Placement
from portal.refusals import Refused
from scheduler.live.lease import turn
from scheduler.live.turns import take_turn
from tests.live.puppets import Town


def at_once(*acts: Callable[[], object]) -> None:
    """Run each in a thread with a connection of its own; raise what any of them raised."""

    def alone(act: Callable[[], object]) -> None:
        try:
            act()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        for done in [pool.submit(alone, act) for act in acts]:
            done.result()


@pytest.fixture(autouse=True)
def _real_threads() -> None:
    if connection.vendor == "sqlite" and connection.is_in_memory_db():  # type: ignore[attr-defined]
        pytest.skip("threads share no database in memory")


def test_two_schedulers_plan_one_after_the_other(town: Town) -> None:
    town.node("n1", 4)
    for _ in range(6):
        town.submit()
    at_once(*[lambda: take_turn(reconciling=True)] * 4)
    take_turn(reconciling=False)
    held = Placement.objects.exclude(state="ended")
    assert held.count() == 4
    assert max(Counter(held.values_list("job_id", flat=True)).values()) == 1
    devices = [d for row in PlacedReplica.objects.all() for d in row.devices]
    assert len(devices) == len(set(devices)), "no device is promised twice"


def test_a_turn_is_taken_by_one(town: Town) -> None:
    with turn("cycle") as first, turn("cycle") as second:
        assert first is not None
        assert second is None


def test_the_turn_of_a_dead_process_is_free_at_once(town: Town) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    later = timezone.now() + timedelta(minutes=1)
    holder = f"{socket.gethostname()}:{gone.pid}"
    Lease.objects.update_or_create(name="cycle", defaults={"holder": holder, "until": later})
    with turn("cycle") as mine:
        assert mine is not None
    Lease.objects.filter(name="cycle").update(holder="another-machine:1", until=later)
    with turn("cycle") as mine:
        assert mine is None


def test_reports_steps_and_people_at_once(town: Town) -> None:
    puppets = [town.node("n1", 1), town.node("n2", 1)]
    job = town.submit(replicas=2)
    town.rest()

    def asked(act: Callable[..., None]) -> None:
        try:
            act(town.user, job)
        except Refused as refusal:
            assert refusal.conflict

    for _ in range(5):
        at_once(
            lambda: asked(pause_job),
            *[puppet.step for puppet in puppets],
            lambda: settle(job.id),
            lambda: take_turn(reconciling=True),
        )
    at_once(lambda: asked(cancel_job), *[puppet.step for puppet in puppets])
    town.rest()
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert not Placement.objects.exclude(state="ended").exists()
    assert Job.objects.count() == 1
