"""The machines, their devices, and the partitions that admins cut the fleet into."""

from __future__ import annotations

from django.db import models


class Node(models.Model):
    """One machine, its agent's declared abilities, and what admins decided about it."""

    name = models.SlugField(max_length=63, unique=True)
    token_digest = models.CharField(max_length=64, unique=True)
    region = models.CharField(max_length=60, blank=True, default="")
    cluster = models.CharField(max_length=60, blank=True, default="")
    rack = models.CharField(max_length=60, blank=True, default="")
    cordoned = models.BooleanField(default=False)
    """Nothing new lands here; what runs stays."""
    draining = models.BooleanField(default=False)
    """Nothing new lands here and what runs is moved away."""
    note = models.CharField(max_length=200, blank=True, default="")
    """Why an admin cordoned or drains it."""

    address = models.CharField(max_length=64, blank=True, default="")
    agent = models.CharField(max_length=40, blank=True, default="")
    boot = models.CharField(max_length=64, blank=True, default="")
    driver = models.CharField(max_length=20, blank=True, default="")
    abilities = models.JSONField(default=dict)
    """Name -> {"able": bool, "reason": str}."""
    cpus = models.FloatField(default=0.0)
    memory = models.BigIntegerField(default=0)
    heard_at = models.DateTimeField(null=True, blank=True)
    connected = models.BooleanField(default=False)
    lost_at = models.DateTimeField(null=True, blank=True)
    """When it was given up for its silence; null while it is well."""
    desired_number = models.PositiveBigIntegerField(default=0)
    """Counts the changes of its desired state."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["region", "cluster", "rack", "name"]

    def __str__(self) -> str:
        return self.name

    @property
    def enrolled(self) -> bool:
        """Whether an agent has ever said hello for it."""
        return self.heard_at is not None

    @property
    def well(self) -> bool:
        return self.enrolled and self.lost_at is None

    def able(self, ability: str) -> bool:
        return bool(self.abilities.get(ability, {}).get("able"))

    def why_not(self, ability: str) -> str:
        """The reason that its agent gave for not being able; empty when it is able."""
        if self.able(ability):
            return ""
        return self.abilities.get(ability, {}).get("reason") or "its agent did not say why"


class Device(models.Model):
    """One accelerator of a node, as its agent declared it."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="devices")
    uid = models.CharField(max_length=80)
    """Its id on the node."""
    index = models.PositiveIntegerField(default=0)
    kind = models.CharField(max_length=60)
    memory = models.BigIntegerField(default=0)
    sick = models.CharField(max_length=200, blank=True, default="")
    """Why it must not be used; empty when it is well."""

    class Meta:
        ordering = ["node_id", "index", "uid"]
        constraints = [models.UniqueConstraint(fields=["node", "uid"], name="one_device_a_uid")]

    def __str__(self) -> str:
        return f"{self.node_id}/{self.uid}"


class Partition(models.Model):
    """A named set of nodes that admins give to some tenants. Without tenants it is open to all."""

    slug = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=80)
    nodes = models.ManyToManyField(Node, related_name="partitions", blank=True)
    tenants = models.ManyToManyField("portal.Tenant", related_name="partitions", blank=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.title
