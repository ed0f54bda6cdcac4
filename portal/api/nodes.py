"""Nodes: what they are and do, and what may land on them."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from portal.access import access_node
from portal.actions import nodes
from portal.api.auth import caller
from portal.api.shapes.nodes import (
    NodeNewShape,
    NodePlaceShape,
    NodeShape,
    NodeTokenShape,
    NoteShape,
)
from portal.choices import PlacementState
from portal.models import Job, Node, PlacedReplica, User
from portal.telemetry import latest

NAME = OpenApiParameter("name", str, OpenApiParameter.PATH)


def fleet() -> QuerySet[Node]:
    """Every node with its devices, its partitions and what runs on it, in four queries."""
    present = PlacedReplica.objects.exclude(placement__state=PlacementState.ENDED)
    return Node.objects.prefetch_related(
        "devices",
        "partitions",
        Prefetch("replicas", present.select_related("placement"), to_attr="present"),
    )


@extend_schema_view(
    list=extend_schema(description="Every node of the fleet."), retrieve=extend_schema()
)
class NodeViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Node]):
    """The machines of the fleet; everyone sees them, admins change them."""

    serializer_class = NodeShape
    lookup_field = "name"
    lookup_value_regex = "[a-z0-9-]+"
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Node]:
        return fleet()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(present_nodes(caller(request), page))

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.show(request, access_node(caller(request), kwargs["name"]))

    @extend_schema(request=NodeNewShape, responses={201: NodeTokenShape})
    def create(self, request: Request) -> Response:
        """Enrol a node; its agent shows the token that is answered this once."""
        shape = NodeNewShape(data=request.data)
        shape.is_valid(raise_exception=True)
        node, token = nodes.create_node(caller(request), **shape.validated_data)
        return Response({"name": node.name, "token": token}, status=status.HTTP_201_CREATED)

    @extend_schema(request=NodePlaceShape)
    def partial_update(self, request: Request, name: str) -> Response:
        """Say in which region, cluster and rack it stands."""
        shape = NodePlaceShape(data=request.data)
        shape.is_valid(raise_exception=True)
        node = access_node(caller(request), name)
        nodes.place_node(caller(request), node, **shape.validated_data)
        return self.show(request, node)

    def destroy(self, request: Request, name: str) -> Response:
        """Forget a node on which nothing runs."""
        nodes.remove_node(caller(request), access_node(caller(request), name))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=NoteShape)
    @action(detail=True, methods=["post"])
    def cordon(self, request: Request, name: str) -> Response:
        """Let nothing new land here; what runs stays."""
        node = access_node(caller(request), name)
        nodes.cordon_node(caller(request), node, note(request))
        return self.show(request, node)

    @extend_schema(request=NoteShape)
    @action(detail=True, methods=["post"])
    def drain(self, request: Request, name: str) -> Response:
        """Let nothing new land here and move away what runs."""
        node = access_node(caller(request), name)
        nodes.drain_node(caller(request), node, note(request))
        return self.show(request, node)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def uncordon(self, request: Request, name: str) -> Response:
        """Let jobs land here again."""
        node = access_node(caller(request), name)
        nodes.uncordon_node(caller(request), node)
        return self.show(request, node)

    @extend_schema(request=None, responses=NodeTokenShape)
    @action(detail=True, methods=["post"])
    def token(self, request: Request, name: str) -> Response:
        """Give it a new token, answered this once; the old one is refused from now on."""
        node = access_node(caller(request), name)
        return Response({"name": name, "token": nodes.rotate_token(caller(request), node)})

    def show(self, request: Request, node: Node) -> Response:
        return Response(present_nodes(caller(request), [fleet().get(pk=node.pk)])[0])


def note(request: Request) -> str:
    shape = NoteShape(data=request.data)
    shape.is_valid(raise_exception=True)
    return str(shape.validated_data["note"])


def present_nodes(user: User | Any, found: list[Node]) -> Any:
    """Answer nodes with their newest telemetry; jobs that the user may not see stay nameless."""
    holders = {seat.placement.job_id for node in found for seat in getattr(node, "present", [])}
    visible = Job.objects.visible_to(user).filter(id__in=holders)
    context = {
        "visible": set(visible.values_list("id", flat=True)),
        "use": latest([node.name for node in found]),
    }
    return NodeShape(found, many=True, context=context).data
