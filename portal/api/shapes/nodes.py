"""Nodes and their devices as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.choices import PlacementState
from portal.models import Node

ABILITIES = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {"able": {"type": "boolean"}, "reason": {"type": "string"}},
        "required": ["able", "reason"],
    },
}


class DeviceShape(TypedDict):
    """One device; ``jobs`` names its holders as far as the caller may see them."""

    uid: str
    index: int
    kind: str
    memory: int
    sick: str
    taken: bool
    jobs: list[int]
    utilisation: float | None
    memory_used: int | None
    power: float | None


class NodeShape(serializers.ModelSerializer[Node]):
    """One node with what its agent declared, what admins decided, and what runs on it."""

    state = serializers.SerializerMethodField(
        help_text="unheard, lost, draining, cordoned, silent or ready."
    )
    abilities = serializers.SerializerMethodField()
    devices = serializers.SerializerMethodField()
    partitions = serializers.SlugRelatedField[Any](slug_field="slug", many=True, read_only=True)

    class Meta:
        model = Node
        fields = [
            *("name", "state", "region", "cluster", "rack", "cordoned", "draining", "note"),
            *("address", "agent", "driver", "cpus", "memory", "heard_at", "connected", "lost_at"),
            *("abilities", "partitions", "devices"),
        ]
        read_only_fields = fields

    def get_state(self, node: Node) -> str:
        return node_state(node)

    @extend_schema_field(ABILITIES)
    def get_abilities(self, node: Node) -> dict[str, Any]:
        return dict(node.abilities)

    def get_devices(self, node: Node) -> list[DeviceShape]:
        visible: set[int] = self.context.get("visible", set())
        use: Mapping[str, Any] = self.context.get("use", {}).get(node.name, {}).get("devices", {})
        holders = holders_of(node)
        return [
            DeviceShape(
                uid=device.uid,
                index=device.index,
                kind=device.kind,
                memory=device.memory,
                sick=device.sick,
                taken=device.uid in holders,
                jobs=sorted(holders.get(device.uid, set()) & visible),
                utilisation=use.get(device.uid, {}).get("utilisation"),
                memory_used=use.get(device.uid, {}).get("memory"),
                power=use.get(device.uid, {}).get("power"),
            )
            for device in node.devices.all()
        ]


class NodeNewShape(serializers.Serializer[Any]):
    """A node to enrol."""

    name = serializers.CharField(max_length=63)
    region = serializers.CharField(max_length=60, required=False, allow_blank=True)
    cluster = serializers.CharField(max_length=60, required=False, allow_blank=True)
    rack = serializers.CharField(max_length=60, required=False, allow_blank=True)


class NodePlaceShape(serializers.Serializer[Any]):
    """Where a node stands."""

    region = serializers.CharField(max_length=60, required=False, allow_blank=True)
    cluster = serializers.CharField(max_length=60, required=False, allow_blank=True)
    rack = serializers.CharField(max_length=60, required=False, allow_blank=True)


class NoteShape(serializers.Serializer[Any]):
    """Why a node is taken out of use."""

    note = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


class NodeTokenShape(serializers.Serializer[Any]):
    """A node's new token, shown this once."""

    name = serializers.CharField(read_only=True)
    token = serializers.CharField(read_only=True)


def node_state(node: Node) -> str:
    """Answer one word for where a node stands, the gravest first."""
    if not node.enrolled:
        return "unheard"
    if node.lost_at is not None:
        return "lost"
    if node.draining:
        return "draining"
    if node.cordoned:
        return "cordoned"
    return "ready" if node.connected else "silent"


def holders_of(node: Node) -> dict[str, set[int]]:
    """Answer which jobs hold each device, from the replicas that the view fetched along."""
    holders: dict[str, set[int]] = {}
    for replica in getattr(node, "present", []):
        if replica.placement.state != PlacementState.PARKED:
            for uid in replica.devices:
                holders.setdefault(uid, set()).add(replica.placement.job_id)
    return holders
