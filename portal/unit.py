"""What a transaction does once at its end, however many jobs it was about.

Writes that many steps have in common (nodes to be told, time to be booked, histories to be kept)
are heaped up while the transaction runs, and each heap is written once before it is committed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from django.db import transaction


class Heap(Protocol):
    """Something that grows during a unit and is written at its end."""

    def write(self) -> None: ...


H = TypeVar("H", bound=Heap)


class Unit:
    """The heaps of one transaction, and what it does once after its commit."""

    def __init__(self) -> None:
        self._heaps: dict[type[Heap], Heap] = {}
        self._after: dict[Callable[[], object], None] = {}

    def heap(self, kind: type[H]) -> H:
        """The unit's heap of this kind; made when it is first asked for."""
        found = self._heaps.setdefault(kind, kind())
        assert isinstance(found, kind)
        return found

    def after(self, act: Callable[[], object]) -> None:
        """Do this once when all is committed and told, however often it is asked for."""
        self._after[act] = None

    def write(self) -> None:
        """Write every heap, always in the same order, so that no two units wait for each other."""
        for kind in sorted(self._heaps, key=lambda kind: kind.__qualname__):
            self._heaps[kind].write()
        for act in self._after:
            transaction.on_commit(act)


class _Open(threading.local):
    unit: Unit | None = None


_open = _Open()


def after_commit(act: Callable[[], object]) -> None:
    """Do this once the open transaction is committed, at once if there is none."""
    if _open.unit is not None:
        _open.unit.after(act)
    else:
        transaction.on_commit(act)


@contextmanager
def unit() -> Iterator[Unit]:
    """Open a transaction that is a unit, or go on in the one that this thread has open."""
    if _open.unit is not None:
        yield _open.unit
        return
    with transaction.atomic():
        opened = _open.unit = Unit()
        try:
            yield opened
        finally:
            _open.unit = None
        opened.write()
