"""Who calls: a person's session (with CSRF), a person's bearer token, or a node's token."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from portal.actions.nodes import find_node
from portal.actions.signing import wrong_token
from portal.actions.tokens import find_token
from portal.models import AccessToken, Node, User

REMEDY = "It may have expired or been revoked; make a new one on the Tokens page."


class BearerAuthentication(BaseAuthentication):
    """``Authorization: Bearer tp_...``; needs no CSRF token, for no browser adds it by itself."""

    def authenticate(self, request: Request) -> tuple[User, AccessToken] | None:
        secret = bearer(request)
        if secret is None:
            return None
        token = find_token(secret, timezone.now())
        if token is None:
            wrong_token(request)
            raise AuthenticationFailed(f"This token is not valid. {REMEDY}")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="Tidepool"'


class IsAdmin(BasePermission):
    """Lets only admins of the platform through."""

    message = "Only an admin may do this."

    def has_permission(self, request: Request, view: Any) -> bool:
        return bool(request.user.is_authenticated and request.user.is_admin)


def caller(request: Request) -> User:
    """Answer who calls; ``NotAuthenticated`` where nobody does."""
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user


def bearer(request: Request | HttpRequest) -> str | None:
    """Answer the bearer token that a request shows, or None where it shows none."""
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer":
        return None
    return secret.strip()


def calling_node(request: HttpRequest) -> Node | None:
    """Answer the node whose token a request shows."""
    secret = bearer(request)
    return find_node(secret) if secret else None


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI description names the bearer tokens."""

    target_class = "portal.api.auth.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A token of the Tokens page."}
