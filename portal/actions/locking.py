"""One writer a job at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from django.db import OperationalError
from django.db.models import prefetch_related_objects

from portal.choices import PlacementState
from portal.models import Job, Placement
from portal.unit import unit

log = logging.getLogger(__name__)

AT_ONCE = 64
"""Jobs in one transaction: others wait for its end, on SQLite every other writer."""


def in_bulk(ids: Iterable[int], act: Callable[[list[int]], object]) -> None:
    """Have ``act`` do with many jobs what it does in one transaction, some at a time.

    Those whose transaction fails are taken one by one, so that one job's trouble is not the
    others'. The last failure is raised once all were tried; ``OperationalError`` at once.
    """
    jobs = sorted(set(ids))
    failures: list[Exception] = []
    for first in range(0, len(jobs), AT_ONCE):
        some = jobs[first : first + AT_ONCE]
        try:
            act(some)
        except OperationalError:
            raise
        except Exception as failure:
            if len(some) == 1:
                failures.append(failure)
            else:
                log.warning("%d jobs are taken one by one: %r", len(some), failure)
                failures += _one_by_one(some, act)
    if failures:
        raise failures[-1]


def _one_by_one(ids: list[int], act: Callable[[list[int]], object]) -> Iterator[Exception]:
    for id in ids:
        try:
            act([id])
        except OperationalError:
            raise
        except Exception as failure:
            log.exception("job %d is left as it is", id)
            yield failure


@contextmanager
def locked_jobs(ids: Iterable[int]) -> Iterator[list[Job]]:
    """Open a unit and hold the rows of these jobs until it ends. SQLite locks the whole database.

    Each comes with its tenant, its tier and its ``standing`` placements, replicas and nodes, in as
    many queries for many jobs as for one. One that does not exist is left out.
    """
    with unit():
        rows = Job.objects.select_for_update(of=("self",)).select_related("tenant", "tier")
        # Always in the order of their ids, so that no two units wait for each other.
        jobs = list(rows.filter(pk__in=set(ids)).order_by("pk"))
        _fetch_standing(jobs, "replicas__node")
        yield jobs


@contextmanager
def glimpsed_jobs(ids: Iterable[int]) -> Iterator[list[Job]]:
    """Hold the rows of jobs as `locked_jobs` does, to see what follows from facts about them.

    Of each only its ``standing`` placements with their replicas is there, and its state; `whole`
    brings the rest for those with which there is something to be done.
    """
    with unit():
        rows = Job.objects.select_for_update().filter(pk__in=set(ids)).order_by("pk")
        jobs = list(rows.only("state", "pause_asked"))
        _fetch_standing(jobs, "replicas")
        yield jobs


def whole(glimpsed: Sequence[Job]) -> list[Job]:
    """Jobs that were glimpsed in the open unit, with all that those of `locked_jobs` have."""
    if not glimpsed:
        return []
    rows = Job.objects.select_related("tenant", "tier")
    standing = {job.id: job.standing for job in glimpsed}
    jobs = list(rows.filter(pk__in=standing).order_by("pk"))
    for job in jobs:
        job.standing = standing[job.id]
        for placement in job.standing:
            placement.job = job
    placements = [placement for job in jobs for placement in job.standing]
    prefetch_related_objects([seat for row in placements for seat in row.replicas.all()], "node")
    return jobs


@contextmanager
def locked_job(id: int) -> Iterator[Job]:
    """Open a unit and hold the job's row until it ends; ``Job.DoesNotExist`` if there is none."""
    with locked_jobs([id]) as jobs:
        if not jobs:
            raise Job.DoesNotExist(f"There is no job {id}.")
        yield jobs[0]


def _fetch_standing(jobs: list[Job], along: str) -> None:
    rows = (
        Placement.objects.filter(job__in=jobs)
        .exclude(state=PlacementState.ENDED)
        .prefetch_related(along)
        .order_by("epoch")
    )
    by_id = {job.id: job for job in jobs}
    for job in jobs:
        job.standing = []
    for row in rows:
        row.job = by_id[row.job_id]
        row.job.standing.append(row)
