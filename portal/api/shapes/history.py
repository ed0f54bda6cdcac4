"""What became of a job: its receipts, decisions, checkpoints and placements."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.shapes.jobs import Seat
from portal.models import Checkpoint, Decision, JobUse, Move, Placement


class ReceiptShape(serializers.ModelSerializer[Move]):
    """One interruption: why, who asked, what it cost and where the job went on."""

    asked_by = serializers.CharField(source="asked_by.username", default=None, read_only=True)
    downtime_s = serializers.FloatField(
        read_only=True, allow_null=True, help_text="Seconds in which no step was computed."
    )

    class Meta:
        model = Move
        fields = [
            *("id", "kind", "remedy", "reason", "sentence", "asked_by", "beneficiary"),
            *("from_nodes", "to_nodes", "from_devices", "to_devices", "began_at", "stopped_at"),
            *("left_at", "resumed_at", "downtime_s", "phases", "bytes_raw", "bytes_new"),
            *("bytes_stored", "lost_s", "called_off"),
        ]
        read_only_fields = fields


class DecisionShape(serializers.ModelSerializer[Decision]):
    """What the planner answered for the job."""

    class Meta:
        model = Decision
        fields = ["at", "kind", "reason", "numbers", "sentence"]
        read_only_fields = fields


class CheckpointShape(serializers.ModelSerializer[Checkpoint]):
    """One consistent cut through all replicas."""

    class Meta:
        model = Checkpoint
        fields = [
            *("number", "state", "periodic", "began_at", "frozen_at", "committed_at", "worked_s"),
            *("bytes_raw", "bytes_new", "bytes_stored", "phases", "error", "collected"),
        ]
        read_only_fields = fields


class UseShape(serializers.ModelSerializer[JobUse]):
    """What a job made of its devices at one moment: sums over its replicas."""

    utilisation = serializers.FloatField(help_text="Mean over its devices, 0 to 1.")

    class Meta:
        model = JobUse
        fields = ["at", "devices", "utilisation", "device_memory", "cpus", "memory"]
        read_only_fields = fields


class PlacementShape(serializers.ModelSerializer[Placement]):
    """Where the job ran for a while."""

    seats = serializers.SerializerMethodField()
    checkpoint: Any = serializers.IntegerField(
        source="checkpoint.number",
        default=None,
        read_only=True,
        help_text="Number of the checkpoint it went on from; null: it began here.",
    )

    class Meta:
        model = Placement
        fields = [
            *("epoch", "state", "want", "then", "devices", "checkpoint"),
            *("created_at", "running_at", "ended_at", "seats"),
        ]
        read_only_fields = fields

    def get_seats(self, placement: Placement) -> list[Seat]:
        return [
            Seat(rank=seat.rank, node=seat.node.name, devices=seat.devices, state=seat.state)
            for seat in placement.replicas.all()
        ]
