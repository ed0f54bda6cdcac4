"""Tenants, their quotas and their members."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet, Sum
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from portal.access import access_tenant, require_admin, visible_tenants
from portal.actions import members, tenants
from portal.api.auth import caller
from portal.api.shapes.tenants import (
    MemberShape,
    QuotaShape,
    TenantChangeShape,
    TenantNewShape,
    TenantShape,
)
from portal.choices import PlacementState
from portal.models import Membership, Placement, Quota, Tenant, User

ANY = "any"
"""How an address names the quota for devices of every kind."""


class TenantViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Tenant]):
    """Your tenants; an admin sees all and changes them."""

    queryset = Tenant.objects.all()
    serializer_class = TenantShape
    lookup_field = "slug"
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Tenant]:
        found = visible_tenants(self.request.user)
        return found.select_related("parent").prefetch_related("quotas")

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **standing(self.request.user)}

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.show(access_tenant(caller(request), kwargs["slug"]))

    @extend_schema(request=TenantNewShape, responses={201: TenantShape})
    def create(self, request: Request) -> Response:
        """Make a tenant; it begins without any quota."""
        require_admin(caller(request))
        shape = TenantNewShape(data=request.data)
        shape.is_valid(raise_exception=True)
        tenant = tenants.create_tenant(caller(request), **shape.validated_data)
        return self.show(tenant, status.HTTP_201_CREATED)

    @extend_schema(request=TenantChangeShape)
    def partial_update(self, request: Request, slug: str) -> Response:
        """Set title, parent or weight."""
        tenant = access_tenant(caller(request), slug)
        require_admin(caller(request))
        shape = TenantChangeShape(data=request.data)
        shape.is_valid(raise_exception=True)
        return self.show(tenants.change_tenant(caller(request), tenant, **shape.validated_data))

    def destroy(self, request: Request, slug: str) -> Response:
        """Remove a tenant that never had a job."""
        tenants.remove_tenant(caller(request), access_tenant(caller(request), slug))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(responses=MemberShape(many=True))
    @action(detail=True, pagination_class=None)
    def members(self, request: Request, slug: str) -> Response:
        """Who belongs to it, and in which role."""
        tenant = access_tenant(caller(request), slug)
        found = Membership.objects.filter(tenant=tenant).select_related("user")
        return Response(MemberShape(found.order_by("user__username"), many=True).data)

    def show(self, tenant: Tenant, code: int = status.HTTP_200_OK) -> Response:
        shape = TenantShape(tenant, context=standing(self.request.user))
        return Response(shape.data, status=code)


class QuotaView(APIView):
    """What a tenant may use of one kind of device; the kind ``any`` counts every kind."""

    @extend_schema(request=QuotaShape, responses=QuotaShape)
    def put(self, request: Request, slug: str, kind: str) -> Response:
        """Set it, as admin."""
        tenant = access_tenant(caller(request), slug)
        require_admin(caller(request))
        shape = QuotaShape(data=request.data)
        shape.is_valid(raise_exception=True)
        quota = tenants.set_quota(
            caller(request), tenant, "" if kind == ANY else kind, **shape.validated_data
        )
        return Response(QuotaShape(quota).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, kind: str) -> Response:
        """Remove it, as admin; the last one stays."""
        tenant = access_tenant(caller(request), slug)
        require_admin(caller(request))
        found = Quota.objects.filter(tenant=tenant, device_kind="" if kind == ANY else kind)
        quota = found.select_related("tenant").first()
        if quota is None:
            raise Http404(f"{slug} has no quota for {kind}.")
        tenants.remove_quota(caller(request), quota)
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema(parameters=[OpenApiParameter("username", str, OpenApiParameter.PATH)])
class MemberView(APIView):
    """One member of a tenant."""

    @extend_schema(request=MemberShape, responses=MemberShape)
    def put(self, request: Request, slug: str, username: str) -> Response:
        """Make someone a member, or give a member another role; managers and admins may."""
        tenant = access_tenant(caller(request), slug)
        shape = MemberShape(data=request.data)
        shape.is_valid(raise_exception=True)
        role = shape.validated_data["role"]
        return Response(
            MemberShape(members.set_member(caller(request), tenant, username, role)).data
        )

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, username: str) -> Response:
        """End a membership; managers and admins may."""
        tenant = access_tenant(caller(request), slug)
        members.require_manager(caller(request), tenant)
        found = Membership.objects.filter(tenant=tenant, user__username=username)
        member = found.select_related("user", "tenant").first()
        if member is None:
            raise Http404(f"{username} is no member of {slug}.")
        members.remove_member(caller(request), member)
        return Response(status=status.HTTP_204_NO_CONTENT)


def standing(user: User | Any) -> dict[str, Any]:
    """Answer the user's roles and the devices that each tenant's jobs hold, by tenant."""
    present = Placement.objects.filter(state=PlacementState.ACTIVE).order_by()
    held = present.values_list("job__tenant").annotate(devices=Sum("devices"))
    roles = Membership.objects.filter(user_id=user.pk).values_list("tenant", "role")
    return {"roles": dict(roles), "held": dict(held)}
