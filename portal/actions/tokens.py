"""Make, recognise and revoke the bearer tokens that act for people."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from portal.models import AccessToken, User
from portal.refusals import Refused

PREFIX = "tp_"
SHOWN = 10
"""Characters of a token that stay readable."""
USED_EVERY = timedelta(minutes=1)
LONGEST_DAYS = 3650
LIVE_AT_MOST = 100


def digest(secret: str) -> str:
    """Answer what is kept of a token: 32 random bytes need no salt and no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(user: User, name: str, days: int | None = 90) -> tuple[AccessToken, str]:
    """Make a token that lives for ``days`` (None: for ever) and answer it with its secret.

    The secret is nowhere kept and can't be shown again. Refused when a live token has the name.
    """
    name = name.strip()
    if not name or len(name) > 80:
        raise Refused({"name": "Give the token a name of 1 to 80 characters."})
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise Refused({"days": f"Let it live for 1 to {LONGEST_DAYS} days, or for ever."})
    if AccessToken.objects.filter(user=user, revoked_at=None).count() >= LIVE_AT_MOST:
        raise Refused(f"You have {LIVE_AT_MOST} tokens; revoke one first.", id="too-many-tokens")
    secret = PREFIX + secrets.token_urlsafe(32)
    expires = None if days is None else timezone.now() + timedelta(days=days)
    try:
        with transaction.atomic():
            token = AccessToken.objects.create(
                user=user,
                name=name,
                prefix=secret[:SHOWN],
                digest=digest(secret),
                expires_at=expires,
            )
    except IntegrityError:
        raise Refused(
            {"name": f"You have a token {name!r}; revoke it or choose another name."}
        ) from None
    return token, secret


def replace_token(user: User, name: str, days: int | None = 90) -> tuple[AccessToken, str]:
    """Make a token and revoke the live one that has its name."""
    with transaction.atomic():
        for old in AccessToken.objects.filter(user=user, name=name.strip(), revoked_at=None):
            revoke_token(old)
        return create_token(user, name, days)


def revoke_token(token: AccessToken) -> None:
    """End a token; whoever shows it from now on is refused. Done twice, it stays as it was."""
    AccessToken.objects.filter(id=token.id, revoked_at=None).update(revoked_at=timezone.now())


def find_token(secret: str, now: datetime) -> AccessToken | None:
    """Answer the live token with this secret and note its use, at most once a minute."""
    token = (
        AccessToken.objects.select_related("user")
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .filter(digest=digest(secret), revoked_at=None, user__is_active=True)
        .order_by()
        .first()
    )
    if token and (token.used_at is None or token.used_at < now - USED_EVERY):
        AccessToken.objects.filter(id=token.id).update(used_at=now)
    return token
