"""Jobs: submit, look up, and ask things of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from portal.access import access_job, steer_job
from portal.actions import steering
from portal.actions.submitting import (
    JobRequest,
    check_request,
    clone_request,
    submit_job,
    submit_jobs,
)
from portal.actions.uploads import discard_upload
from portal.api.auth import caller
from portal.api.filters import JobFilter
from portal.api.parsers import BoundedJSONParser
from portal.api.shapes.jobs import JobDetailShape, JobShape
from portal.api.shapes.requests import (
    CloneShape,
    JobRequestShape,
    change_request,
    read_request,
    read_requests,
)
from portal.choices import PlacementState
from portal.models import Job, Placement, User
from portal.refusals import Refused


class MigrateShape(serializers.Serializer[Any]):
    node = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="Empty: anywhere else."
    )


class ResizeShape(serializers.Serializer[Any]):
    devices = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class VerdictShape(serializers.Serializer[Any]):
    """What would become of a submission."""

    remedy = serializers.CharField()
    reason = serializers.CharField()
    devices = serializers.IntegerField()
    quota_left = serializers.IntegerField(allow_null=True, help_text="null: without limit")


MOST_JOBS = 1000
"""The most jobs that one request submits."""
FILTERS = [
    OpenApiParameter("state", str, description="One or more states, or live or ended; commas."),
    OpenApiParameter("tenant", str),
    OpenApiParameter("tier", str),
    OpenApiParameter("owner", str, description="A username, or me."),
    OpenApiParameter("tag", str),
    OpenApiParameter("q", str, description="Part of the name, or the id."),
    OpenApiParameter("ordering", str, description="A field, - before it to turn it round."),
]


def with_placements(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Have the present placement, its seats and their nodes fetched along, in three queries."""
    placements = Placement.objects.exclude(state=PlacementState.ENDED).order_by("epoch")
    return jobs.select_related("tenant", "tier", "owner", "partition", "upload").prefetch_related(
        Prefetch("placements", placements.prefetch_related("replicas__node"), to_attr="present")
    )


def show(job: Job | int, code: int = status.HTTP_200_OK) -> Response:
    """Answer a job as it is now."""
    fresh = with_placements(Job.objects.filter(id=getattr(job, "id", job))).get()
    return Response(JobDetailShape(fresh).data, status=code)


@extend_schema_view(list=extend_schema(parameters=FILTERS))
class JobViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Job]):
    """The jobs of your tenants."""

    queryset = Job.objects.all()
    lookup_value_regex = "[0-9]{1,18}"
    filter_backends = [JobFilter]
    parser_classes = [BoundedJSONParser, MultiPartParser, FormParser]

    def get_queryset(self) -> QuerySet[Job]:
        return with_placements(Job.objects.visible_to(self.request.user))

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Job]]:
        return JobShape if self.action == "list" else JobDetailShape

    def get_object(self) -> Job:
        access_job(self.request.user, int(self.kwargs["pk"]))
        return self.get_queryset().get(pk=self.kwargs["pk"])

    @extend_schema(request=JobRequestShape, responses={201: JobDetailShape})
    def create(self, request: Request) -> Response:
        """Submit a job, as JSON or as a form with a ``file``; or a JSON list of jobs.

        Of a list, of up to 1,000 jobs, all are queued or none. Errors name the place of the job,
        the first being 0, and its field: ``3.replicas``. Answered is a list of the jobs, in its
        order.
        """
        if isinstance(request.data, list):
            return self.submit_many(request)
        return self.submit(request, JobRequestShape, read_request)

    @extend_schema(request=JobRequestShape, responses=VerdictShape)
    @action(detail=False, methods=["post"])
    def check(self, request: Request) -> Response:
        """Say what would become of a submission, without submitting it."""
        shape = JobRequestShape(data=request.data)
        shape.is_valid(raise_exception=True)
        data = {key: value for key, value in shape.validated_data.items() if key != "file"}
        preview = check_request(caller(request), read_request(caller(request), data))
        return Response(
            {
                "remedy": preview.verdict.remedy,
                "reason": preview.verdict.reason,
                "devices": preview.devices,
                "quota_left": preview.quota_left,
            }
        )

    @extend_schema(request=CloneShape, responses={201: JobDetailShape})
    @action(detail=True, methods=["post"])
    def clone(self, request: Request, pk: str) -> Response:
        """Submit the same job again, with what the body names instead of what it had.

        Secrets come along only when you gave them.
        """
        old = clone_request(caller(request), access_job(caller(request), int(pk)))
        return self.submit(request, CloneShape, lambda user, data: change_request(user, old, data))

    def submit(
        self,
        request: Request,
        shape_class: type[JobRequestShape],
        read: Callable[[User, dict[str, Any]], JobRequest],
    ) -> Response:
        shape = shape_class(data=request.data)
        shape.is_valid(raise_exception=True)
        wanted = read(caller(request), shape.validated_data)
        try:
            job = submit_job(caller(request), wanted)
        except Refused:
            if "file" in shape.validated_data and wanted.upload:
                discard_upload(wanted.upload)
            raise
        # Just made, it sits nowhere: nothing needs to be fetched again.
        return Response(JobDetailShape(job).data, status=status.HTTP_201_CREATED)

    def submit_many(self, request: Request) -> Response:
        if not 1 <= len(request.data) <= MOST_JOBS:
            raise Refused(f"Submit between 1 and {MOST_JOBS:,} jobs at once.", id="too-many-jobs")
        shape = JobRequestShape(data=request.data, many=True)
        shape.is_valid(raise_exception=True)
        wanted = read_requests(caller(request), shape.validated_data)
        jobs = submit_jobs(caller(request), wanted)
        return Response(JobShape(jobs, many=True).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={202: JobDetailShape})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """End it, wherever it stands."""
        return self.steer(request, pk, steering.cancel_job)

    @extend_schema(request=None, responses={202: JobDetailShape})
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, pk: str) -> Response:
        """Take it off its devices until it is resumed."""
        return self.steer(request, pk, steering.pause_job)

    @extend_schema(request=None, responses={202: JobDetailShape})
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        """Let a paused job wait for devices again."""
        return self.steer(request, pk, steering.resume_job)

    @extend_schema(request=None, responses={202: JobDetailShape})
    @action(detail=True, methods=["post"])
    def checkpoint(self, request: Request, pk: str) -> Response:
        """Take a checkpoint now; it runs on."""
        return self.steer(request, pk, steering.checkpoint_job)

    @extend_schema(request=MigrateShape, responses={202: JobDetailShape})
    @action(detail=True, methods=["post"])
    def migrate(self, request: Request, pk: str) -> Response:
        """Move it while it runs, to a node or anywhere else."""
        shape = MigrateShape(data=request.data)
        shape.is_valid(raise_exception=True)
        return self.steer(request, pk, steering.migrate_job, shape.validated_data["node"])

    @extend_schema(request=ResizeShape, responses={202: JobDetailShape})
    @action(detail=True, methods=["post"])
    def resize(self, request: Request, pk: str) -> Response:
        """Spread the same replicas over fewer or more devices while it runs."""
        shape = ResizeShape(data=request.data)
        shape.is_valid(raise_exception=True)
        return self.steer(request, pk, steering.resize_job, shape.validated_data["devices"])

    def steer(self, request: Request, pk: str, act: Callable[..., None], *told: Any) -> Response:
        job = steer_job(caller(request), int(pk))
        act(caller(request), job, *told)
        return show(job, status.HTTP_202_ACCEPTED)
