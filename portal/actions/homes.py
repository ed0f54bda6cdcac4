"""Which cluster's planner a waiting job was sent to, where several planners share the fleet.

The pass over the whole fleet sends jobs and calls them back; a cluster's planner places what was
sent to it, which takes the home away, or gives it back. Whoever finds that fewer rows changed than
it meant was overtaken, and looks again.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from portal.choices import JobState
from portal.events import job_changed
from portal.models import Job, Settings

FLEET = ""
"""The home of a job that was given back: the pass over the whole fleet places it itself."""


def homes() -> dict[int, str]:
    """Where jobs were sent that have not been placed yet, by id; also of those that were paused."""
    rows = Job.objects.exclude(home=None).order_by().values_list("id", "home")
    return {id: home or FLEET for id, home in rows}


def send(jobs: Collection[int], cluster: str, reason: str, sentence: str) -> int:
    """Send waiting jobs to a cluster's planner, unless admins stopped that; answers how many."""
    with transaction.atomic():
        chosen = Settings.objects.select_for_update().filter(pk=1).first()
        if chosen is None or not chosen.changes.get("by_cluster"):
            return 0
        rows = Job.objects.select_for_update(of=("self",)).select_related("tenant")
        rows = rows.filter(pk__in=jobs, state=JobState.WAITING, home=None).order_by("pk")
        sent = list(rows.only("state", "tenant__slug"))
        Job.objects.filter(pk__in=[job.pk for job in sent]).update(
            home=cluster, reason=reason, reason_numbers={"cluster": cluster}, sentence=sentence
        )
        for job in sent:
            job.sentence = sentence
            job_changed(job)
    return len(sent)


def call_back(jobs: Collection[int]) -> bool:
    """Take jobs back from the planners they were sent to; false if one was placed meanwhile."""
    with transaction.atomic():
        return len(_leave_home(jobs)) == len(jobs)


def call_all_back() -> None:
    """From now on no cluster's planner places anything. Call it in the transaction that says so."""
    _leave_home(homes())


def give_back(jobs: Collection[int], cluster: str) -> int:
    """Leave to the pass over the whole fleet what a cluster's planner found no place for."""
    with transaction.atomic():
        rows = Job.objects.select_for_update().filter(pk__in=jobs, home=cluster).order_by("pk")
        ids = list(rows.values_list("pk", flat=True))
        return Job.objects.filter(pk__in=ids).update(home=FLEET)


def _leave_home(jobs: Collection[int]) -> list[int]:
    # In the order of their ids, so that no two transactions wait for each other.
    rows = Job.objects.select_for_update().filter(pk__in=jobs).exclude(home=None).order_by("pk")
    ids = list(rows.values_list("pk", flat=True))
    Job.objects.filter(pk__in=ids).update(home=None)
    return ids
