"""Jobs as the API shows them."""

from __future__ import annotations

from typing import Any, TypedDict

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.actions.accounting import fraction_of
from portal.api.shapes.fields import STRING_LIST, STRING_MAP
from portal.api.shapes.kept import KeptFields
from portal.models import Job, Placement
from portal.sealing import SealError


class Seat(TypedDict):
    """Where one replica sits, and what its agent last said of it."""

    rank: int
    node: str
    devices: list[str]
    state: str


class Source(TypedDict):
    """Where the job's files come from; all empty: from nowhere."""

    upload: int | None
    filename: str
    size: int
    sha256: str
    git: str
    ref: str


class JobShape(KeptFields, serializers.ModelSerializer[Job]):
    """One job, as lists show it."""

    tenant = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    tier = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    partition = serializers.SlugRelatedField[Any](
        slug_field="slug", read_only=True, allow_null=True
    )
    owner = serializers.CharField(source="owner.username", read_only=True)
    tags = serializers.SerializerMethodField()
    devices = serializers.IntegerField(read_only=True, help_text="Devices at full size.")
    devices_held = serializers.SerializerMethodField(help_text="Devices it holds now.")
    nodes = serializers.SerializerMethodField(help_text="Names of the nodes it is on.")
    gpu_fraction = serializers.SerializerMethodField(
        help_text="Device-seconds delivered until now over those it was entitled to; null at first."
    )

    class Meta:
        model = Job
        fields = [
            *("id", "name", "tenant", "tier", "owner", "partition", "tags", "state", "sentence"),
            *("reason", "remedy", "verdict", "replicas", "gpus_per_replica", "fewest_devices"),
            *("device_kind", "devices", "devices_held", "nodes", "submitted_at", "waiting_since"),
            *("started_at", "running_since", "ended_at", "exit_code", "error", "detail"),
            *("expected_s", "worked_s", "moves", "gpu_fraction"),
        ]
        read_only_fields = fields

    @extend_schema_field(STRING_LIST)
    def get_tags(self, job: Job) -> list[str]:
        return list(job.tags)

    def get_devices_held(self, job: Job) -> int:
        placement = present(job)
        return placement.devices if placement and placement.state != "parked" else 0

    def get_nodes(self, job: Job) -> list[str]:
        placement = present(job)
        return sorted({seat.node.name for seat in placement.replicas.all()}) if placement else []

    def get_gpu_fraction(self, job: Job) -> float | None:
        fraction = fraction_of(job, getattr(job, "present", []), timezone.now())
        return None if fraction is None else round(fraction, 6)


class JobDetailShape(JobShape):
    """One job with all that was asked for; of its secrets only the names."""

    command = serializers.SerializerMethodField()
    environment = serializers.SerializerMethodField()
    secrets = serializers.SerializerMethodField(help_text="Names only.")
    source = serializers.SerializerMethodField()  # type: ignore[assignment]
    seats = serializers.SerializerMethodField()

    class Meta(JobShape.Meta):
        fields = [
            *JobShape.Meta.fields,
            *("command", "environment", "secrets", "source", "device_memory", "cpus_per_replica"),
            *("memory_per_replica", "retries", "retried", "checkpoint_every_s", "internet"),
            "unprofiled",
            *("cloned_from", "epoch", "reason_numbers", "pause_asked", "move_asked"),
            *("wanted_nodes", "asked_devices", "last_moved_at", "delivered", "entitled", "seats"),
        ]
        read_only_fields = fields

    @extend_schema_field(STRING_LIST)
    def get_command(self, job: Job) -> list[str]:
        return list(job.command)

    @extend_schema_field(STRING_MAP)
    def get_environment(self, job: Job) -> dict[str, str]:
        return dict(job.environment)

    @extend_schema_field(STRING_LIST)
    def get_secrets(self, job: Job) -> list[str]:
        try:
            return sorted(job.secrets)
        except SealError:
            return []

    def get_source(self, job: Job) -> Source:
        upload = job.upload
        return Source(
            upload=upload.id if upload else None,
            filename=upload.filename if upload else "",
            size=upload.size if upload else 0,
            sha256=upload.sha256 if upload else "",
            git=job.git,
            ref=job.ref,
        )

    def get_seats(self, job: Job) -> list[Seat]:
        placement = present(job)
        if placement is None:
            return []
        return [
            Seat(rank=seat.rank, node=seat.node.name, devices=seat.devices, state=seat.state)
            for seat in placement.replicas.all()
        ]


def present(job: Job) -> Placement | None:
    """Answer the placement that the view fetched along: what holds the job now, or is about to."""
    placements: list[Placement] = getattr(job, "present", [])
    return placements[0] if placements else None
