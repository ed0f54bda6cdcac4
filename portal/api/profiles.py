"""What a job gains from CPUs: the newest measurement, and asking for another."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.access import access_job, steer_job
from portal.actions.profiling import ask_profile
from portal.api.auth import caller
from portal.gains import known_of, plain, profile_of
from portal.models import Job


class PointShape(serializers.Serializer[Any]):
    """How the measured replica did with so many CPUs."""

    cpus = serializers.FloatField()
    pace = serializers.FloatField(help_text="1: its pace with its whole share.")
    used = serializers.FloatField(help_text="CPUs that it used.")
    held_back = serializers.FloatField(help_text="Part of the time slices it was stopped in.")


class MatrixShape(serializers.Serializer[Any]):
    """Paces for each device by CPUs (rows, measured) and bytes of memory (columns, predicted)."""

    cpus = serializers.ListField(child=serializers.FloatField())
    memory = serializers.ListField(child=serializers.IntegerField())
    paces = serializers.ListField(child=serializers.ListField(child=serializers.FloatField()))


class MeasuredShape(serializers.Serializer[Any]):
    """One measurement."""

    job = serializers.IntegerField(help_text="The job it was measured on; one of the same recipe.")
    number = serializers.IntegerField()
    at = serializers.DateTimeField()
    node = serializers.CharField()
    device_kind = serializers.CharField()
    source = serializers.CharField(  # type: ignore[assignment]
        help_text="What told its pace: device or cpu time."
    )
    seconds = serializers.FloatField(help_text="How long the measuring took.")
    share = serializers.FloatField(help_text="CPUs of the replica at which its pace is 1.")
    sentence = serializers.CharField()
    error = serializers.CharField(allow_blank=True, help_text="Why nothing could be measured.")
    points = PointShape(many=True)
    matrix = MatrixShape(allow_null=True)


class ProfileShape(serializers.Serializer[Any]):
    """What is known of a job, and whether it is to be measured."""

    asked = serializers.BooleanField(help_text="Whether it is about to be measured.")
    unprofiled = serializers.BooleanField(help_text="Whether it must not be measured.")
    cpus = serializers.FloatField(
        allow_null=True, help_text="CPUs that the planner allots to rank 0 now; null: its own."
    )
    last_error = serializers.CharField(
        allow_blank=True, help_text="Why its own last measurement failed, if it did."
    )
    profile = MeasuredShape(allow_null=True)


class ProfileView(APIView):
    """What a job gains from CPUs."""

    @extend_schema(responses=ProfileShape)
    def get(self, request: Request, pk: int) -> Response:
        return Response(told(access_job(caller(request), pk)))

    @extend_schema(request=None, responses={202: ProfileShape})
    def post(self, request: Request, pk: int) -> Response:
        """Have it measured while it runs; it is slowed for some seconds."""
        job = steer_job(caller(request), pk)
        ask_profile(caller(request), job)
        job.refresh_from_db()
        return Response(told(job), status=status.HTTP_202_ACCEPTED)


def told(job: Job) -> dict[str, Any]:
    return {**known_of(job), "profile": (found := profile_of(job)) and plain(found)}
