"""Rows about the fleet as a whole: who plans now, what admins set, and its use over time."""

from __future__ import annotations

from django.db import models


class Lease(models.Model):
    """A named turn that one process holds at a time, taken by a guarded update."""

    name = models.CharField(max_length=80, primary_key=True)
    holder = models.CharField(max_length=80, blank=True, default="")
    until = models.DateTimeField(null=True, blank=True)
    beat_at = models.DateTimeField(null=True, blank=True)
    """When the last turn ended well."""
    detail = models.JSONField(default=dict)
    """Figures of the last turn."""

    def __str__(self) -> str:
        return self.name


class Settings(models.Model):
    """What admins set for the whole fleet; one row."""

    policy = models.CharField(max_length=40, blank=True, default="")
    """Name of a policy preset; empty: as the environment says."""
    changes = models.JSONField(default=dict)
    """Fields of the policy that differ from the preset."""
    listening_since = models.DateTimeField(null=True, blank=True)
    """Since when the portal has been able to hear agents; silence before it is not theirs."""

    def __str__(self) -> str:
        return "settings"


class FleetSample(models.Model):
    """The fleet's use, one row a minute, for charts."""

    at = models.DateTimeField(unique=True)
    devices = models.PositiveIntegerField(default=0)
    """Devices of well nodes."""
    allocated = models.PositiveIntegerField(default=0)
    utilisation = models.FloatField(default=0.0)
    """Sum over devices of their mean utilisation, in devices."""
    waiting = models.PositiveIntegerField(default=0)
    running = models.PositiveIntegerField(default=0)
    tenants = models.JSONField(default=dict)
    """Tenant slug -> devices allocated."""

    class Meta:
        ordering = ["at"]

    def __str__(self) -> str:
        return f"{self.at:%F %R}"
