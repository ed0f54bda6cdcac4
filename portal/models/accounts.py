"""People and the bearer tokens that act for them."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person. ``is_staff`` makes an admin of the platform; memberships give the rest."""

    class Theme(models.TextChoices):
        SYSTEM = "system", "As the system"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    theme = models.CharField(max_length=8, choices=Theme, default=Theme.SYSTEM)
    time_zone = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        ordering = ["username"]

    @property
    def is_admin(self) -> bool:
        return self.is_active and self.is_staff


class AccessToken(models.Model):
    """A named bearer token; only its SHA-256 is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    """The first characters, so that people can tell their tokens apart."""
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"],
                condition=models.Q(revoked_at=None),
                name="one_live_token_a_name",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
