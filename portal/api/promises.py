"""What became of what was promised: the ledger, and the jobs that fell short."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.access import access_job
from portal.api.auth import caller
from portal.ledger import HOUR, Shortfall, by_hour, entries_of, shortfalls
from portal.models import Promise
from portal.refusals import Refused

MOST_HOURS = 24 * 92
WORST = 50
"""Jobs that are answered, those worst off first."""
SPAN = [
    OpenApiParameter("hours", float, description="How far back; 24 unless told."),
    OpenApiParameter("until", datetime, description="Up to this moment; now unless told."),
]
OF = [OpenApiParameter("tenant", str), OpenApiParameter("tier", str)]


class PromiseShape(serializers.Serializer[Any]):
    """What the jobs of a tenant and tier were entitled to in an hour, and what they got."""

    hour = serializers.DateTimeField()
    tenant = serializers.CharField(source="of_tenant")
    tier = serializers.CharField(source="of_tier")
    promise = serializers.FloatField(help_text="GPU fraction promised.")
    delivered = serializers.FloatField(source="got", help_text="Device-seconds.")
    entitled = serializers.FloatField(source="owed", help_text="Device-seconds.")
    jobs = serializers.IntegerField()
    broken = serializers.IntegerField(help_text="Jobs that got less than promised in that hour.")


class JobPromiseShape(serializers.ModelSerializer[Promise]):
    """What a job was entitled to in an hour, and what it got."""

    class Meta:
        model = Promise
        fields = ["hour", "promise", "delivered", "entitled"]
        read_only_fields = fields


class ShortfallShape(serializers.Serializer[Any]):
    """A job that got less than promised in some hours, and where the time went."""

    job = serializers.IntegerField(source="job.id")
    name = serializers.CharField(source="job.name")
    tenant = serializers.CharField(source="job.tenant.slug")
    tier = serializers.CharField(source="job.tier.slug")
    promise = serializers.FloatField(source="account.promise")
    delivered = serializers.FloatField(source="account.delivered", help_text="Device-seconds.")
    entitled = serializers.FloatField(source="account.entitled", help_text="Device-seconds.")
    hours = serializers.IntegerField(source="account.entries")
    broken = serializers.IntegerField(source="account.broken", help_text="Hours.")
    missing_s = serializers.FloatField(help_text="Seconds at its full size that it did not get.")
    still_s = serializers.FloatField(help_text="Of them, how long it stood still for moves.")
    waited_s = serializers.FloatField(help_text="Of them, how long it waited or ran smaller.")
    moves = serializers.SerializerMethodField(help_text="Kinds of these moves, with how many.")

    def get_moves(self, shortfall: Shortfall) -> dict[str, int]:
        return dict(shortfall.moves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A time to look back at."""

    since: datetime
    until: datetime


class PromisesView(APIView):
    """The ledger of promises by hour, tenant and tier, for the jobs you may see."""

    @extend_schema(parameters=[*SPAN, *OF], responses=PromiseShape(many=True))
    def get(self, request: Request) -> Response:
        rows = by_hour(asked_entries(request, asked_time(request)))
        return Response(PromiseShape(rows, many=True).data)


class ShortfallsView(APIView):
    """The jobs that lack most of what they were promised, and where the time went."""

    @extend_schema(parameters=[*SPAN, *OF], responses=ShortfallShape(many=True))
    def get(self, request: Request) -> Response:
        asked = asked_time(request)
        entries = asked_entries(request, asked)
        worst = shortfalls(entries, asked.since, asked.until, WORST)
        return Response(ShortfallShape(worst, many=True).data)


class JobPromisesView(APIView):
    """The ledger of one job by hour."""

    @extend_schema(parameters=SPAN, responses=JobPromiseShape(many=True))
    def get(self, request: Request, pk: int) -> Response:
        asked, job = asked_time(request), access_job(caller(request), pk)
        entries = Promise.objects.filter(job=job, hour__gt=asked.since, hour__lt=asked.until)
        return Response(JobPromiseShape(entries.order_by("-hour"), many=True).data)


def asked_time(request: Request) -> Asked:
    """The last ``hours`` before ``until``, with the hour that had begun by then, too."""
    told = request.query_params
    try:
        hours = float(told.get("hours") or 24)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= MOST_HOURS:
        raise Refused({"hours": f"Give up to {MOST_HOURS} hours."})
    until = timezone.now()
    if text := told.get("until"):
        # A plus that was not escaped arrives as a space.
        until_ = parse_moment(text.replace(" ", "+"))
        if until_ is None:
            raise Refused({"until": "Give a moment such as 2026-05-01T12:00:00Z."})
        until = until_
    return Asked(since=until - timedelta(hours=hours) - HOUR, until=until)


def parse_moment(text: str) -> datetime | None:
    """A moment in ISO 8601, in UTC unless it names a zone; None where it is none."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    if moment is None or moment.year < 2000 or moment.year > 9000:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def asked_entries(request: Request, asked: Asked) -> QuerySet[Promise]:
    entries = entries_of(caller(request), asked.since, asked.until)
    for name in ("tenant", "tier"):
        if slug := request.query_params.get(name):
            entries = entries.filter(**{f"{name}__slug": slug})
    return entries
