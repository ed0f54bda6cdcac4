"""Service tiers and partitions: the rules that admins set for the fleet."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from portal.access import access_partition, require_admin, visible_partitions, visible_tenants
from portal.actions import partitions, tiers
from portal.api.auth import caller
from portal.api.shapes.tenants import (
    PartitionChangeShape,
    PartitionShape,
    TierChangeShape,
    TierShape,
)
from portal.models import Partition, Tier


class TierViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Tier]):
    """The service tiers; admins change them."""

    queryset = Tier.objects.all()
    serializer_class = TierShape
    lookup_field = "slug"
    filter_backends: list[Any] = []

    @extend_schema(request=TierShape, responses={201: TierShape})
    def create(self, request: Request) -> Response:
        """Make a tier."""
        require_admin(caller(request))
        shape = TierShape(data=request.data)
        shape.is_valid(raise_exception=True)
        tier = tiers.create_tier(caller(request), **shape.validated_data)
        return Response(TierShape(tier).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=TierChangeShape, responses=TierShape)
    def partial_update(self, request: Request, slug: str) -> Response:
        """Set some of its fields; its jobs are promised the new fraction from now on."""
        require_admin(caller(request))
        shape = TierChangeShape(data=request.data, partial=True)
        shape.is_valid(raise_exception=True)
        tier = tiers.change_tier(caller(request), find_tier(slug), **shape.validated_data)
        return Response(TierShape(tier).data)

    def destroy(self, request: Request, slug: str) -> Response:
        """Remove a tier that no job ever named."""
        require_admin(caller(request))
        tiers.remove_tier(caller(request), find_tier(slug))
        return Response(status=status.HTTP_204_NO_CONTENT)


class PartitionViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Partition]):
    """The partitions open to you; admins change them."""

    queryset = Partition.objects.all()
    serializer_class = PartitionShape
    lookup_field = "slug"
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Partition]:
        # Other tenants' names are none of the caller's business.
        tenants = Prefetch("tenants", visible_tenants(self.request.user))
        return visible_partitions(self.request.user).prefetch_related("nodes", tenants)

    @extend_schema(request=PartitionShape, responses={201: PartitionShape})
    def create(self, request: Request) -> Response:
        """Make a partition."""
        require_admin(caller(request))
        shape = PartitionShape(data=request.data)
        shape.is_valid(raise_exception=True)
        partition = partitions.create_partition(caller(request), **shape.validated_data)
        return Response(PartitionShape(partition).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=PartitionChangeShape, responses=PartitionShape)
    def partial_update(self, request: Request, slug: str) -> Response:
        """Set its title, nodes or tenants."""
        partition = access_partition(caller(request), slug)
        require_admin(caller(request))
        shape = PartitionChangeShape(data=request.data, partial=True)
        shape.is_valid(raise_exception=True)
        partitions.change_partition(caller(request), partition, **shape.validated_data)
        return Response(PartitionShape(partition).data)

    def destroy(self, request: Request, slug: str) -> Response:
        """Remove a partition that no live job asks for."""
        partition = access_partition(caller(request), slug)
        partitions.remove_partition(caller(request), partition)
        return Response(status=status.HTTP_204_NO_CONTENT)


def find_tier(slug: str) -> Tier:
    tier = Tier.objects.filter(slug=slug).first()
    if tier is None:
        raise Http404(f"There is no tier {slug!r}.")
    return tier
