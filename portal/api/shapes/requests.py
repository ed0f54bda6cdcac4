"""What a submission must look like: types and bounds; sense is the action's to judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from portal.access import access_upload
from portal.actions.submitting import JobRequest
from portal.actions.uploads import receive_upload
from portal.api.shapes.fields import CommandField, TagsField, VariablesField
from portal.api.shapes.kept import KeptFields
from portal.models import User
from portal.refusals import Refused

LARGE = 2**31 - 1
HUGE = 2**60


class JobRequestShape(KeptFields, serializers.Serializer[JobRequest]):
    """A job to submit. The source is at most one of ``file``, ``upload`` and ``git``."""

    tenant = serializers.SlugField(help_text="Slug of one of your tenants.")
    tier = serializers.SlugField(help_text="Slug of a service tier.")
    name = serializers.CharField(max_length=120, required=False, allow_blank=True)
    command = CommandField(help_text="Words; text is split as a shell would.")
    environment = VariablesField(required=False)
    secrets = VariablesField(
        required=False, write_only=True, help_text="Like environment, but never shown again."
    )
    file = serializers.FileField(
        required=False, write_only=True, help_text="A file or archive (multipart requests only)."
    )
    upload = serializers.IntegerField(
        required=False, allow_null=True, help_text="Id of an earlier upload."
    )
    git = serializers.CharField(max_length=500, required=False, allow_blank=True)
    ref = serializers.CharField(max_length=200, required=False, allow_blank=True)
    replicas = serializers.IntegerField(min_value=1, max_value=LARGE, required=False)
    gpus_per_replica = serializers.IntegerField(min_value=0, max_value=LARGE, required=False)
    fewest_devices = serializers.IntegerField(
        min_value=1,
        max_value=LARGE,
        required=False,
        allow_null=True,
        help_text="Fewest devices it may be shrunk to; nothing: it keeps its size.",
    )
    device_kind = serializers.CharField(max_length=60, required=False, allow_blank=True)
    device_memory = serializers.IntegerField(
        min_value=0, max_value=HUGE, required=False, help_text="Bytes a device must have."
    )
    cpus_per_replica = serializers.FloatField(min_value=0, max_value=1e6, required=False)
    memory_per_replica = serializers.IntegerField(
        min_value=0, max_value=HUGE, required=False, help_text="Bytes."
    )
    partition = serializers.CharField(max_length=40, required=False, allow_blank=True)
    expected_s = serializers.FloatField(
        min_value=0, max_value=1e9, required=False, allow_null=True, help_text="Seconds of work."
    )
    tags = TagsField(required=False)
    retries = serializers.IntegerField(min_value=0, max_value=100, required=False)
    checkpoint_every_s = serializers.IntegerField(
        min_value=0,
        max_value=LARGE,
        required=False,
        allow_null=True,
        help_text="Seconds between checkpoints; 0: none; nothing: as the tier says.",
    )
    internet = serializers.BooleanField(
        required=False, default=False, help_text="Whether the job may reach the internet."
    )
    unprofiled = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Never slow it for some seconds to measure what it gains from CPUs.",
    )


class CloneShape(JobRequestShape):
    """What the clone shall have instead of what the job had; nothing needs to be named."""

    tenant = serializers.SlugField(required=False)
    tier = serializers.SlugField(required=False)
    command = CommandField(required=False)
    internet = serializers.BooleanField(required=False)
    unprofiled = serializers.BooleanField(required=False)


def read_request(user: User, data: dict[str, Any]) -> JobRequest:
    """Make a request from validated data; an uploaded file is kept first."""
    return JobRequest(**with_source(user, data))


def read_requests(user: User, many: Sequence[dict[str, Any]]) -> list[JobRequest]:
    """Make a request of each; an upload that several of them name is looked up once.

    Raises ``Refused`` with the place of the first wrong one.
    """
    uploads: dict[int, Any] = {}
    found = []
    for place, data in enumerate(many):
        fields = dict(data)
        id = fields.pop("upload", None)
        if fields.pop("file", None) is not None:
            raise Refused({f"{place}.file": "Send it to uploads/ first, and name its upload."})
        if id is not None and fields.get("git"):
            raise Refused({f"{place}.git": "Give either a git URL or an upload, not both."})
        if id is not None and id not in uploads:
            uploads[id] = access_upload(user, id)
        found.append(JobRequest(**fields, upload=uploads[id] if id is not None else None))
    return found


def change_request(user: User, request: JobRequest, data: dict[str, Any]) -> JobRequest:
    """Answer the request with some fields replaced; a new source takes the old one's place."""
    changes = with_source(user, data)
    if changes.get("upload") or changes.get("git"):
        changes = {"upload": None, "git": "", "ref": ""} | changes
    return dataclasses.replace(request, **changes)


def with_source(user: User, data: dict[str, Any]) -> dict[str, Any]:
    fields = dict(data)
    file = fields.pop("file", None)
    if sum(1 for source in (file, fields.get("upload"), fields.get("git")) if source) > 1:
        raise Refused({"file": "Name one source only: a file, an upload or a git repository."})
    if "upload" in fields and fields["upload"] is not None:
        fields["upload"] = access_upload(user, fields["upload"])
    if file is not None:
        fields["upload"] = receive_upload(user, file)
    return fields
