"""The fleet at a glance: what there is, what is used, and how that was over time."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django.db.models import Count
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.access import visible_tenants
from portal.api.auth import caller
from portal.api.nodes import fleet
from portal.api.shapes.nodes import holders_of, node_state
from portal.choices import JobState
from portal.models import FleetSample, Job, Node
from portal.refusals import Refused
from portal.telemetry import latest

MOST_HOURS = 24 * 31
COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}


class KindShape(serializers.Serializer[Any]):
    """Devices of one kind on nodes that are well."""

    kind = serializers.CharField()
    devices = serializers.IntegerField()
    taken = serializers.IntegerField()
    sick = serializers.IntegerField()
    utilisation = serializers.FloatField(
        allow_null=True, help_text="Mean over the devices that told, 0 to 1; null: none did."
    )


class FleetShape(serializers.Serializer[Any]):
    """The fleet now. Jobs are those you may see."""

    nodes = serializers.DictField(child=serializers.IntegerField(), help_text="By state.")
    kinds = KindShape(many=True)
    jobs = serializers.DictField(child=serializers.IntegerField(), help_text="By state.")


class SampleShape(serializers.ModelSerializer[FleetSample]):
    """One minute of the fleet's use."""

    tenants = serializers.SerializerMethodField(help_text="Devices your tenants held.")

    class Meta:
        model = FleetSample
        fields = ["at", "devices", "allocated", "utilisation", "waiting", "running", "tenants"]
        read_only_fields = fields

    def get_tenants(self, sample: FleetSample) -> dict[str, int]:
        visible: set[str] = self.context["tenants"]
        return {slug: held for slug, held in sample.tenants.items() if slug in visible}


class FleetView(APIView):
    """The fleet now."""

    @extend_schema(responses=FleetShape)
    def get(self, request: Request) -> Response:
        nodes = list(fleet())
        jobs = Job.objects.visible_to(caller(request)).order_by().values_list("state")
        counted = dict(jobs.annotate(count=Count("id")))
        return Response(
            {
                "nodes": Counter(node_state(node) for node in nodes),
                "kinds": kinds_of([node for node in nodes if node.well]),
                "jobs": {state: counted.get(state, 0) for state in JobState.values},
            }
        )


class HistoryView(APIView):
    """The fleet's use over the last hours, a row a minute, oldest first."""

    @extend_schema(
        parameters=[OpenApiParameter("hours", float, description="24 unless told.")],
        responses=SampleShape(many=True),
    )
    def get(self, request: Request) -> Response:
        try:
            hours = float(request.query_params.get("hours") or 24)
            since = timezone.now() - timedelta(hours=hours)
        except (ValueError, OverflowError):
            hours = -1.0
        if not 0 < hours <= MOST_HOURS:
            raise Refused({"hours": f"Give up to {MOST_HOURS} hours."})
        tenants = set(visible_tenants(caller(request)).values_list("slug", flat=True))
        samples = FleetSample.objects.filter(at__gte=since)
        return Response(SampleShape(samples, many=True, context={"tenants": tenants}).data)


def kinds_of(nodes: list[Node]) -> list[dict[str, Any]]:
    """Count the devices of each kind, how many are taken or sick, and how busy they are."""
    use = latest([node.name for node in nodes])
    kinds: dict[str, dict[str, Any]] = {}
    told: dict[str, list[float]] = {}
    for node in nodes:
        holders = holders_of(node)
        busy = use.get(node.name, {}).get("devices", {})
        for device in node.devices.all():
            row = kinds.setdefault(
                device.kind, {"kind": device.kind, "devices": 0, "taken": 0, "sick": 0}
            )
            row["devices"] += 1
            row["taken"] += device.uid in holders
            row["sick"] += bool(device.sick)
            if device.uid in busy:
                told.setdefault(device.kind, []).append(busy[device.uid]["utilisation"])
    for kind, row in kinds.items():
        values = told.get(kind, [])
        row["utilisation"] = sum(values) / len(values) if values else None
    return sorted(kinds.values(), key=lambda row: str(row["kind"]))
