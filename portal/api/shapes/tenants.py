"""Tenants, quotas, members, tiers and partitions as the API shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.choices import Role
from portal.models import Membership, Node, Partition, Quota, Tenant, Tier

DEVICES = 10_000_000


class QuotaShape(serializers.ModelSerializer[Quota]):
    """What a tenant may use of one kind of device."""

    borrow = serializers.IntegerField(
        min_value=0,
        max_value=DEVICES,
        allow_null=True,
        default=0,
        help_text="Devices beyond reserved; null: as many as others leave idle.",
    )
    reserved = serializers.IntegerField(min_value=0, max_value=DEVICES)
    lend = serializers.BooleanField(default=True)

    class Meta:
        model = Quota
        fields = ["device_kind", "reserved", "borrow", "lend"]
        read_only_fields = ["device_kind"]


class TenantShape(serializers.ModelSerializer[Tenant]):
    """A team with its quotas, what it holds now, and the caller's role in it."""

    parent: Any = serializers.SlugRelatedField[Any](
        slug_field="slug", read_only=True, allow_null=True
    )
    quotas = QuotaShape(many=True, read_only=True)
    role = serializers.SerializerMethodField(
        allow_null=True, help_text="Yours; null: none, you see it as admin."
    )
    devices_held = serializers.SerializerMethodField(help_text="Devices its jobs hold now.")

    class Meta:
        model = Tenant
        fields = ["slug", "title", "parent", "weight", "usage", "role", "devices_held", "quotas"]
        read_only_fields = fields

    def get_role(self, tenant: Tenant) -> str | None:
        found: str | None = self.context["roles"].get(tenant.pk)
        return found

    def get_devices_held(self, tenant: Tenant) -> int:
        return int(self.context["held"].get(tenant.pk, 0))


class TenantNewShape(serializers.Serializer[Any]):
    """A tenant to make."""

    slug = serializers.CharField(max_length=40)
    title = serializers.CharField(max_length=80, required=False)
    parent: Any = serializers.SlugRelatedField[Any](
        slug_field="slug", queryset=Tenant.objects.all(), required=False, allow_null=True
    )
    weight = serializers.FloatField(min_value=0.001, max_value=1e6, required=False)


class TenantChangeShape(TenantNewShape):
    """What may be changed of a tenant."""

    slug = None  # type: ignore[assignment]


class MemberShape(serializers.ModelSerializer[Membership]):
    """A person and their role in the tenant."""

    username = serializers.CharField(source="user.username", read_only=True)
    role = serializers.ChoiceField(choices=Role.choices)

    class Meta:
        model = Membership
        fields = ["username", "role"]


class TierShape(serializers.ModelSerializer[Tier]):
    """A service tier: the GPU fraction promised, and who goes first."""

    slug = serializers.CharField(max_length=40)
    title = serializers.CharField(max_length=80, required=False)
    promise = serializers.FloatField(min_value=0, max_value=1, required=False)

    class Meta:
        model = Tier
        fields = ["slug", "title", "rank", "promise", "preemptible", "checkpoint_every_s"]


class TierChangeShape(TierShape):
    """What may be changed of a tier."""

    slug = serializers.CharField(read_only=True)


class PartitionShape(serializers.ModelSerializer[Partition]):
    """A set of nodes, and the tenants it is given to; none: open to all."""

    slug = serializers.CharField(max_length=40)
    title = serializers.CharField(max_length=80, required=False)
    nodes = serializers.SlugRelatedField[Any](
        slug_field="name", queryset=Node.objects.all(), many=True, required=False
    )
    tenants = serializers.SlugRelatedField[Any](
        slug_field="slug", queryset=Tenant.objects.all(), many=True, required=False
    )

    class Meta:
        model = Partition
        fields = ["slug", "title", "nodes", "tenants"]


class PartitionChangeShape(PartitionShape):
    """What may be changed of a partition."""

    slug = serializers.CharField(read_only=True)
