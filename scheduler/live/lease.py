"""One cycle at a time in the whole fleet, through a row taken by a guarded update."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import OperationalError
from django.db.models import Q
from django.utils import timezone

from portal.models import Lease

LASTS = timedelta(seconds=60)


class TurnLostError(OperationalError):
    """The turn took so long that it went to another process: nothing more may be done in it."""


class Turn(dict[str, Any]):
    """A turn that is held; what is put into it is kept as its figures."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._renew_at = time.monotonic() + LASTS.total_seconds() / 3

    def keep(self) -> None:
        """Hold the turn on, if it is time for that; raise ``TurnLostError`` if another has it."""
        if time.monotonic() < self._renew_at:
            return
        now = timezone.now()
        mine = Lease.objects.filter(name=self._name, holder=holder(), until__gt=now)
        if not mine.update(until=now + LASTS):
            raise TurnLostError(f"The turn {self._name} went to another process.")
        self._renew_at = time.monotonic() + LASTS.total_seconds() / 3


def holder() -> str:
    """This process, by machine and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _dead_holder(name: str) -> str | None:
    """Who holds the turn, if that was a process of this machine that is no more."""
    held = Lease.objects.filter(name=name, until__gt=timezone.now()).first()
    if held is None:
        return None
    machine, _, pid = held.holder.rpartition(":")
    if machine != socket.gethostname() or not pid.isdigit():
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return held.holder
    except PermissionError:
        return None
    return None


def _take(name: str, free: Q) -> bool:
    until = timezone.now() + LASTS
    return bool(Lease.objects.filter(free, name=name).update(holder=holder(), until=until))


def _inherit(name: str) -> bool:
    """Take a turn that nobody has ever had, or that a process had that is no more."""
    _, made = Lease.objects.get_or_create(name=name)
    if made:
        return _take(name, Q(until=None))
    dead = _dead_holder(name)
    return dead is not None and _take(name, Q(holder=dead))


@contextmanager
def turn(name: str) -> Iterator[Turn | None]:
    """Hold the named turn, or get None when another process has it.

    A holder that died on this machine loses its turn at once, one elsewhere after ``LASTS``: who
    may take longer keeps it on (`Turn.keep`).
    """
    if not _take(name, Q(until=None) | Q(until__lt=timezone.now())) and not _inherit(name):
        yield None
        return
    detail = Turn(name)
    held = Lease.objects.filter(name=name, holder=holder())
    try:
        yield detail
    except BaseException:
        held.update(until=None)
        raise
    held.update(until=None, beat_at=timezone.now(), detail=detail)
