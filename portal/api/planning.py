"""How the fleet is planned, and what became of what was promised."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Q, QuerySet, Sum
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.access import access_job
from portal.actions.planning import CHOSEN, live_presets, set_policy
from portal.api.auth import IsAdmin, caller
from portal.models import Job, Promise, Settings
from portal.refusals import Refused
from scheduler.planner import PRESETS

MOST_HOURS = 24 * 92
HOURS = OpenApiParameter("hours", float, description="How far back; 24 unless told.")


class PolicyShape(serializers.Serializer[Any]):
    """A preset's name (empty: as the environment says) and the fields that differ from it."""

    policy = serializers.CharField(max_length=40, allow_blank=True)
    changes = serializers.DictField(required=False, default=dict)


class PolicyNowShape(PolicyShape):
    """The policy that is in force, with all its fields."""

    presets = serializers.ListField(child=serializers.CharField(), read_only=True)
    in_force = serializers.DictField(read_only=True)


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


class PolicyView(APIView):
    """The planner's policy, for admins."""

    permission_classes = [IsAdmin]

    @extend_schema(responses=PolicyNowShape)
    def get(self, request: Request) -> Response:
        return Response(policy_now())

    @extend_schema(request=PolicyShape, responses=PolicyNowShape)
    def put(self, request: Request) -> Response:
        """Run the fleet by another policy from the next cycle on."""
        shape = PolicyShape(data=request.data)
        shape.is_valid(raise_exception=True)
        told = shape.validated_data
        set_policy(caller(request), told["policy"], told["changes"])
        return Response(policy_now())


class PromisesView(APIView):
    """The ledger of promises by hour, tenant and tier, for the jobs you may see."""

    @extend_schema(
        parameters=[HOURS, OpenApiParameter("tenant", str), OpenApiParameter("tier", str)],
        responses=PromiseShape(many=True),
    )
    def get(self, request: Request) -> Response:
        visible = Job.objects.visible_to(caller(request))
        entries = recent(request, Promise.objects.filter(job__in=visible))
        for name in ("tenant", "tier"):
            if slug := request.query_params.get(name):
                entries = entries.filter(**{f"{name}__slug": slug})
        return Response(PromiseShape(summed(entries), many=True).data)


class JobPromisesView(APIView):
    """The ledger of one job by hour."""

    @extend_schema(parameters=[HOURS], responses=JobPromiseShape(many=True))
    def get(self, request: Request, pk: int) -> Response:
        entries = Promise.objects.filter(job=access_job(caller(request), pk))
        return Response(JobPromiseShape(recent(request, entries), many=True).data)


def policy_now() -> dict[str, Any]:
    row = Settings.objects.filter(pk=1).first() or Settings()
    preset = PRESETS.get(row.policy or settings.POLICY, PRESETS["default"])
    values = {name: getattr(preset, name) for name in CHOSEN} | row.changes
    # JSON knows no infinity; a limit that is none is null.
    values = {name: None if value == math.inf else value for name, value in values.items()}
    return {
        "policy": row.policy,
        "changes": row.changes,
        "presets": live_presets(),
        "in_force": {"name": preset.name, **values},
    }


def recent(request: Request, entries: QuerySet[Promise]) -> QuerySet[Promise]:
    """Narrow entries to the last ``hours``, newest first."""
    try:
        hours = float(request.query_params.get("hours") or 24)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= MOST_HOURS:
        raise Refused({"hours": f"Give up to {MOST_HOURS} hours."})
    since = timezone.now() - timedelta(hours=hours + 1)  # the hour that had begun by then, too
    return entries.filter(hour__gt=since).order_by("-hour", "job")


def summed(entries: QuerySet[Promise]) -> QuerySet[Any, Any]:
    """Sum entries over the jobs of each hour, tenant and tier."""
    broken = Q(delivered__lt=F("promise") * F("entitled"))
    told = entries.order_by().annotate(of_tenant=F("tenant__slug"), of_tier=F("tier__slug"))
    rows = told.values("hour", "of_tenant", "of_tier", "promise").annotate(
        got=Sum("delivered"),
        owed=Sum("entitled"),
        jobs=Count("id"),
        broken=Count("id", filter=broken),
    )
    return rows.order_by("-hour", "of_tenant", "of_tier")
