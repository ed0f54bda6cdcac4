"""What if, played out: simulations are asked for, watched, read and called off, by admins."""

from __future__ import annotations

from typing import Any

from django.core.files.base import File
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from portal.access import access_simulation, access_upload
from portal.actions.simulations import (
    Question,
    ask_simulation,
    cancel_simulation,
    remove_simulation,
)
from portal.api.auth import IsAdmin, caller
from portal.api.shapes.simulations import (
    ComparisonShape,
    SimulationAskShape,
    SimulationResultShape,
    SimulationShape,
)
from portal.comparing import choose, compare
from portal.models import Simulation, User


class SimulationViewSet(mixins.ListModelMixin, GenericViewSet[Simulation]):
    """What was asked, newest first, for admins."""

    queryset = Simulation.objects.select_related("owner").defer("figures", "measures", "table")
    serializer_class = SimulationShape
    permission_classes = [IsAdmin]
    lookup_value_regex = "[0-9]{1,18}"
    filter_backends: list[Any] = []

    @extend_schema(request=SimulationAskShape, responses={201: SimulationShape})
    def create(self, request: Request) -> Response:
        """Ask: it is queued, and played in the background, one at a time."""
        shape = SimulationAskShape(data=request.data)
        shape.is_valid(raise_exception=True)
        simulation = ask(caller(request), dict(shape.validated_data))
        return Response(SimulationShape(simulation).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses=SimulationResultShape)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One of them, with all measures of each run once it is done."""
        return Response(SimulationResultShape(access_simulation(caller(request), int(pk))).data)

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "runs", str, required=True,
                description="Runs with commas between: 12.1 is one, 12 all of a simulation.",
            )
        ],
        responses=ComparisonShape,
    )  # fmt: skip
    @action(detail=False, url_path="compare", url_name="compare", pagination_class=None)
    def compare(self, request: Request) -> Response:
        """Any number of runs side by side, differences told from the first."""
        words = str(request.query_params.get("runs", "")).split(",")
        runs = choose(caller(request), (word for word in words if word.strip()))
        return Response(ComparisonShape(compare(runs)).data)

    @extend_schema(request=None, responses=SimulationShape)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Call it off; one that has ended stays as it is."""
        simulation = access_simulation(caller(request), int(pk))
        cancel_simulation(caller(request), simulation)
        return Response(SimulationShape(simulation).data)

    def destroy(self, request: Request, pk: str) -> Response:
        """Remove one that has ended, with its trace and what it showed."""
        remove_simulation(caller(request), access_simulation(caller(request), int(pk)))
        return Response(status=status.HTTP_204_NO_CONTENT)


def ask(user: User, told: dict[str, Any]) -> Simulation:
    """Queue what the API was asked; the trace of an upload is copied."""
    number = told.pop("upload", None)
    if number is None:
        return ask_simulation(user, Question(**told))
    upload = access_upload(user, number)
    with upload.file.open("rb") as file:
        return ask_simulation(user, Question(**told, trace=File(file, name=upload.filename)))
