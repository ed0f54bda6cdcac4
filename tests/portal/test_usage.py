"""Samples of a job's use as lines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from portal.models import Job, JobUse
from portal.usage import POINTS, lines_of, step_at
from tests.portal.api.conftest import make_job, own_folders

__all__ = ["make_job", "own_folders"]


def sampled(job: Job, *seconds: float) -> None:
    JobUse.objects.bulk_create(
        JobUse(job=job, at=job.submitted_at + timedelta(seconds=at), utilisation=at / 1e6, cpus=2)
        for at in seconds
    )


@pytest.mark.parametrize(("age_s", "step_s"), [(0, 10), (899, 10), (900, 60), (1e6, 300)])
def test_steps(age_s: float, step_s: float) -> None:
    assert step_at(age_s) == step_s


def test_a_gap_breaks_the_line(make_job: Callable[..., Job]) -> None:
    job = make_job()
    sampled(job, 10, 20, 30, 90, 100)
    lines = lines_of(job, job.submitted_at + timedelta(seconds=100))
    assert [len(line) for line in lines] == [3, 2]
    assert [round(point.share, 2) for point in lines[1]] == [0.9, 1.0]


def test_a_long_life_is_thinned_out_to_what_can_be_seen(make_job: Callable[..., Job]) -> None:
    job = make_job()
    sampled(job, *range(10, 20_000, 10))
    (line,) = lines_of(job, job.submitted_at + timedelta(seconds=20_000))
    assert len(line) <= POINTS
    assert all(point.cpus == 2 for point in line)
    assert line[-1].utilisation == pytest.approx(0.02, abs=0.0001)


def test_a_job_without_samples_has_no_lines(make_job: Callable[..., Job]) -> None:
    job = make_job()
    assert lines_of(job, job.submitted_at) == []
