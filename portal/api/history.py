"""What became of a job: receipts, decisions, checkpoints, placements."""

from __future__ import annotations

from typing import Any

from django.db.models import Model, QuerySet
from rest_framework.generics import ListAPIView

from portal.access import access_job
from portal.api.shapes.history import (
    CheckpointShape,
    DecisionShape,
    PlacementShape,
    ReceiptShape,
    UseShape,
)
from portal.models import Checkpoint, Decision, Job, JobUse, Move, Placement


class OfJob(ListAPIView[Any]):
    """A list about one job that the caller may see, newest first."""

    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return self.of(Job())
        return self.of(access_job(self.request.user, self.kwargs["pk"]))

    def of(self, job: Job) -> QuerySet[Any, Model]:
        raise NotImplementedError


class ReceiptsView(OfJob):
    """Its interruptions: why, who asked, what each cost, where it went on."""

    queryset = Move.objects.none()
    serializer_class = ReceiptShape

    def of(self, job: Job) -> QuerySet[Any, Model]:
        return Move.objects.filter(job=job.pk).select_related("asked_by")


class DecisionsView(OfJob):
    """What the planner answered; an entry only where the answer changed."""

    queryset = Decision.objects.none()
    serializer_class = DecisionShape

    def of(self, job: Job) -> QuerySet[Any, Model]:
        return Decision.objects.filter(job=job.pk)


class CheckpointsView(OfJob):
    """Its consistent cuts, with seconds and bytes."""

    queryset = Checkpoint.objects.none()
    serializer_class = CheckpointShape

    def of(self, job: Job) -> QuerySet[Any, Model]:
        return Checkpoint.objects.filter(job=job.pk).order_by("-number")


class UseView(OfJob):
    """What it made of its devices: every ten seconds at first, every five minutes later."""

    queryset = JobUse.objects.none()
    serializer_class = UseShape

    def of(self, job: Job) -> QuerySet[Any, Model]:
        return JobUse.objects.filter(job=job.pk).order_by("-at")


class PlacementsView(OfJob):
    """Where it ran, one placement after the other."""

    queryset = Placement.objects.none()
    serializer_class = PlacementShape

    def of(self, job: Job) -> QuerySet[Any, Model]:
        placements = Placement.objects.filter(job=job.pk).order_by("-epoch")
        return placements.select_related("checkpoint").prefetch_related("replicas__node")
