"""One cycle at a time in the whole fleet, through a row taken by a guarded update."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from portal.models import Lease

LASTS = timedelta(seconds=60)


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


@contextmanager
def turn(name: str) -> Iterator[dict[str, Any] | None]:
    """Hold the named turn, or get None when another process has it.

    What is put into the yielded dictionary is kept as the turn's figures. A holder that died
    on this machine loses its turn at once, one elsewhere after ``LASTS``.
    """
    now = timezone.now()
    Lease.objects.get_or_create(name=name)
    free = Q(until=None) | Q(until__lt=now)
    if (dead := _dead_holder(name)) is not None:
        free |= Q(holder=dead)
    mine = Lease.objects.filter(free, name=name).update(holder=holder(), until=now + LASTS)
    if not mine:
        yield None
        return
    detail: dict[str, Any] = {}
    held = Lease.objects.filter(name=name, holder=holder())
    try:
        yield detail
    except BaseException:
        held.update(until=None)
        raise
    held.update(until=None, beat_at=timezone.now(), detail=detail)
