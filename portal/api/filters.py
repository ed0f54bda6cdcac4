"""Narrow and order lists by the query string; a value that means nothing is refused."""

from __future__ import annotations

import json
import re
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from portal.choices import ENDED_STATES, LIVE_STATES, JobState
from portal.models import Job
from portal.refusals import Refused

GROUPS = {"live": LIVE_STATES, "ended": ENDED_STATES}
ORDERINGS = {
    "id": "id",
    "name": "name",
    "state": "state",
    "submitted_at": "submitted_at",
    "started_at": "started_at",
    "ended_at": "ended_at",
    "tenant": "tenant__slug",
    "tier": "tier__rank",
    "owner": "owner__username",
    "moves": "moves",
}


class JobFilter(BaseFilterBackend):
    """``state``, ``tenant``, ``tier``, ``owner``, ``tag``, ``q`` and ``ordering``."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> Any:
        return filter_jobs(queryset, request.query_params, request.user.get_username())


def filter_jobs(jobs: QuerySet[Job], asked: Any, me: str) -> QuerySet[Job]:
    """Narrow and order jobs by a page's or a request's query; ``Refused`` names the wrong field."""
    if state := asked.get("state"):
        jobs = jobs.filter(state__in=states(state))
    if tenant := asked.get("tenant"):
        jobs = jobs.filter(tenant__slug=tenant)
    if tier := asked.get("tier"):
        jobs = jobs.filter(tier__slug=tier)
    if owner := asked.get("owner"):
        jobs = jobs.filter(owner__username=me if owner == "me" else owner)
    if tag := asked.get("tag"):
        jobs = with_tag(jobs, tag)
    if words := asked.get("q"):
        matches = Q(name__icontains=words)
        if re.fullmatch("[0-9]{1,18}", words):
            matches |= Q(id=int(words))
        jobs = jobs.filter(matches)
    return order(jobs, asked.get("ordering") or "-id")


def states(text: str) -> list[str]:
    found: list[str] = []
    for word in text.split(","):
        if word not in GROUPS and word not in JobState.values:
            known = ", ".join([*JobState.values, *GROUPS])
            raise Refused({"state": f"There is no state {word!r}; choose from {known}."})
        found += GROUPS.get(word, (word,))
    return found


def with_tag(jobs: QuerySet[Job], tag: str) -> QuerySet[Job]:
    # SQLite can't look into a JSON list, so its text is searched: escaped there, elsewhere not.
    told = Q(as_text__contains=json.dumps(tag)) | Q(
        as_text__contains=json.dumps(tag, ensure_ascii=False)
    )
    return jobs.annotate(as_text=Cast("tags", TextField())).filter(told)


def order(jobs: QuerySet[Job], ordering: str) -> QuerySet[Job]:
    field = ORDERINGS.get(ordering.removeprefix("-"))
    if field is None:
        raise Refused({"ordering": f"Order by one of {', '.join(ORDERINGS)}."})
    sign = "-" if ordering.startswith("-") else ""
    return jobs.order_by(f"{sign}{field}", f"{sign}id")
