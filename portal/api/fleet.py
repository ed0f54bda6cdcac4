"""The fleet at a glance: what there is, what is used, and how that was over time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.models import Count, TextField
from django.db.models.functions import Cast
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.access import visible_tenants
from portal.api.auth import caller
from portal.api.shapes.nodes import node_state
from portal.choices import JobState, PlacementState
from portal.models import Device, FleetSample, Job, Node, PlacedReplica
from portal.refusals import Refused
from portal.telemetry import latest

MOST_HOURS = 24 * 31
STATED = ("heard_at", "lost_at", "draining", "cordoned", "connected")
"""What the state of a node is told by."""
HOLDING = (PlacementState.HELD, PlacementState.ACTIVE)
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
        nodes = list(Node.objects.order_by("id").only("name", *STATED))
        jobs = Job.objects.visible_to(caller(request)).order_by().values_list("state")
        counted = dict(jobs.annotate(count=Count("id")))
        return Response(
            {
                "nodes": Counter(node_state(node) for node in nodes),
                "kinds": kinds_of({node.id: node.name for node in nodes if node.well}),
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


def kinds_of(nodes: Mapping[int, str]) -> list[dict[str, Any]]:
    """Count the devices of each kind, how many are taken or sick, and how busy they are.

    ``nodes`` are the names of those that count, by id. No instances are made: there are many.
    """
    use = latest(nodes.values())
    taken = taken_devices()
    kinds: dict[str, dict[str, Any]] = {}
    told: dict[str, list[float]] = {}
    devices = Device.objects.order_by().values_list("node_id", "uid", "kind", "sick")
    for node, uid, kind, sick in devices.iterator():
        if node not in nodes:
            continue
        row = kinds.get(kind)
        if row is None:
            row = kinds[kind] = {"kind": kind, "devices": 0, "taken": 0, "sick": 0}
        row["devices"] += 1
        row["taken"] += (node, uid) in taken
        row["sick"] += bool(sick)
        busy = use.get(nodes[node])
        if busy and uid in busy.get("devices", {}):
            told.setdefault(kind, []).append(busy["devices"][uid]["utilisation"])
    for kind, row in kinds.items():
        values = told.get(kind, [])
        row["utilisation"] = sum(values) / len(values) if values else None
    return sorted(kinds.values(), key=lambda row: str(row["kind"]))


def taken_devices() -> set[tuple[int, str]]:
    """Every device that a replica holds, by its node's row and its id there."""
    held = PlacedReplica.objects.filter(placement__state__in=HOLDING).order_by()
    rows = held.values_list("node_id", Cast("devices", TextField()))
    return {(node, uid) for node, devices in rows.iterator() for uid in json.loads(devices)}
