"""Recognise people by name and password, and slow down whoever guesses."""

from __future__ import annotations

import hashlib
import logging

import redis
from django.contrib.auth import authenticate
from django.core.cache import cache
from django.http import HttpRequest

from portal.models import User
from portal.refusals import Refused

log = logging.getLogger(__name__)

WINDOW_S = 300
GUESSES_AN_ACCOUNT = 10
GUESSES_AN_ADDRESS = 100
WRONG_TOKENS = 60


class TooManyAttempts(Refused):
    """Too many wrong answers came from there within the window."""

    wait_s = WINDOW_S

    def __init__(self) -> None:
        super().__init__(
            f"Too many failed attempts; try again in {WINDOW_S // 60} minutes.",
            id="too-many-attempts",
        )


def sign_in(request: HttpRequest, username: str, password: str) -> User:
    """Answer the person with this name and password.

    Refused with ``wrong-credentials``, or with ``too-many-attempts`` after 10 wrong passwords for
    an account from one address, or 100 from one address, within five minutes.
    """
    address = request.META.get("REMOTE_ADDR", "")
    account = f"account {address} {username.lower()}"
    # Counted before the password is looked at, so that guesses in parallel count too.
    if count(account) > GUESSES_AN_ACCOUNT or count(f"address {address}") > GUESSES_AN_ADDRESS:
        raise TooManyAttempts
    user = authenticate(request, username=username, password=password)
    if not isinstance(user, User):
        raise Refused("The name or the password is wrong.", id="wrong-credentials")
    forget(account)
    return user


def wrong_token(request: HttpRequest) -> None:
    """Count a token that is none; ``TooManyAttempts`` after 60 from one address in five minutes.

    A good token is never held up: only what is wrong is counted, after it was looked at.
    """
    if count(f"token {request.META.get('REMOTE_ADDR', '')}") > WRONG_TOKENS:
        raise TooManyAttempts


def count(what: str) -> int:
    """Count one more of these within the window, and answer how many; 0 while the cache is away."""
    key = key_of(what)
    try:
        cache.add(key, 0, WINDOW_S)
        return cache.incr(key)
    except ValueError:  # it lapsed between the two
        return 1
    except (redis.RedisError, OSError):
        log.warning("the cache is away; attempts are not counted")
        return 0


def forget(what: str) -> None:
    try:
        cache.delete(key_of(what))
    except (redis.RedisError, OSError):
        log.warning("the cache is away; attempts are not forgotten")


def key_of(what: str) -> str:
    return "attempts-" + hashlib.sha256(what.encode()).hexdigest()
