"""Samples of running jobs: whom they are taken of, how often, and what they add up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from portal import telemetry
from portal.choices import JobState
from portal.models import Job, JobUse, Node
from scheduler.live.sampling import due, sample_jobs
from tests.portal.api.conftest import make_job, make_node, node, own_folders, place

__all__ = ["make_job", "node", "own_folders"]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What nodes told in the last second, by name."""
    seconds: dict[str, Any] = {}

    def latest(names: Iterable[str]) -> dict[str, Any]:
        return {name: seconds[name] for name in names if name in seconds}

    monkeypatch.setattr(telemetry, "latest", latest)
    return seconds


def second(job: Job, rank: int, *shares: float) -> dict[str, Any]:
    return {
        "devices": {
            f"cpu{place}": {"utilisation": share, "memory": 100, "power": 0.0}
            for place, share in enumerate(shares)
        },
        "replicas": {f"{job.id}/{rank}": {"cpus": 1.5, "memory": 1000}},
    }


def test_a_sample_adds_up_all_replicas(
    make_job: Callable[..., Job], node: Node, told: dict[str, Any]
) -> None:
    now = timezone.now()
    job = make_job(state=JobState.RUNNING, started_at=now, replicas=2)
    placement = place(job, node)
    placement.replicas.filter(rank=0).update(devices=["cpu0", "cpu1"])
    placement.replicas.filter(rank=1).update(devices=["cpu0"], node=make_node("node-b"))
    told["node-a"] = second(job, 0, 0.5, 0.7)
    told["node-b"] = second(job, 1, 0.9, 0.1)

    sample_jobs(now + timedelta(seconds=10))

    row = JobUse.objects.get(job=job)
    assert row.devices == 3
    assert row.utilisation == pytest.approx(0.7)
    assert (row.device_memory, row.cpus, row.memory) == (300, 3.0, 2000)


def test_who_is_not_heard_of_has_no_sample(
    make_job: Callable[..., Job], node: Node, told: dict[str, Any]
) -> None:
    now = timezone.now()
    silent = make_job(state=JobState.RUNNING, started_at=now)
    place(silent, node)
    waiting = make_job(state=JobState.WAITING)
    told["node-b"] = second(waiting, 0, 0.5)
    sample_jobs(now + timedelta(seconds=10))
    assert not JobUse.objects.exists()


@pytest.mark.parametrize(("age_s", "times"), [(60, 30), (3600, 5), (7 * 3600, 1)])
def test_the_older_a_job_the_rarer_its_samples(
    make_job: Callable[..., Job], age_s: float, times: int
) -> None:
    now = timezone.now()
    job = make_job(state=JobState.RUNNING, started_at=now - timedelta(seconds=age_s))
    turns = [now + timedelta(seconds=10 * turn) for turn in range(30)]
    assert sum(due(turn) == [job.id] for turn in turns) == times
