"""Tenants, their quotas and members, and the service tiers that jobs are promised."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from portal.choices import Role


class Tier(models.Model):
    """A service tier: the GPU fraction promised, and who may push off whom."""

    slug = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=80)
    rank = models.IntegerField(default=0)
    """A higher rank may push a lower one off its devices."""
    promise = models.FloatField(
        default=0.0, validators=[MinValueValidator(0.0), MaxValueValidator(1.0)]
    )
    """Promised GPU fraction, 0 (none) to 1."""
    preemptible = models.BooleanField(default=True)
    checkpoint_every_s = models.PositiveIntegerField(null=True, blank=True)
    """Seconds between periodic checkpoints of its jobs; null: none unless the job asks."""

    class Meta:
        ordering = ["-rank", "slug"]

    def __str__(self) -> str:
        return self.title


class Tenant(models.Model):
    """A team that shares the fleet. Tenants form a tree."""

    slug = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=80)
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="children"
    )
    weight = models.FloatField(default=1.0, validators=[MinValueValidator(0.001)])
    """Its share of what is left over, relative to its siblings."""
    usage = models.FloatField(default=0.0)
    """Device-seconds used, decayed with the fair share's half-life up to ``usage_at``."""
    usage_at = models.DateTimeField(null=True, blank=True)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", related_name="tenants"
    )

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.title


class Quota(models.Model):
    """What a tenant may use of one kind of device; an empty kind counts devices of every kind."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="quotas")
    device_kind = models.CharField(max_length=60, blank=True, default="")
    reserved = models.PositiveIntegerField(default=0)
    borrow = models.PositiveIntegerField(null=True, blank=True, default=0)
    """How many beyond ``reserved`` may be borrowed; null: as many as others leave idle."""
    lend = models.BooleanField(default=True)

    class Meta:
        ordering = ["tenant", "device_kind"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "device_kind"], name="one_quota_a_kind")
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.device_kind or 'any'}: {self.reserved}"


class Membership(models.Model):
    """A user's role within a tenant."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role, default=Role.RESEARCHER)

    class Meta:
        ordering = ["tenant", "user"]
        constraints = [
            models.UniqueConstraint(fields=["user", "tenant"], name="one_membership_a_tenant")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.tenant_id}: {self.role}"
