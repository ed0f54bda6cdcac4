"""Fetching images ahead: while a replica still runs elsewhere, most of it comes here.

What is fetched is an earlier image of it. When it is stopped, only what has changed since is left
to store, to fetch and to write. All this is done for hints, at low priority, one at a time; nothing
depends on it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from agents.checkpoints import Base, CheckpointError, Manifest, fetch_image
from agents.protocol import Prefetch
from agents.record import owner_name

if TYPE_CHECKING:
    from agents.node import Node

NEAR = 0.7
"""Share of an image's bytes that makes an older one good enough to lean on."""
NICENESS = 10

log = logging.getLogger("tidepool.prefetching")


class Prefetching:
    """The hints of one node and how far they are."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._hints: list[Prefetch] = []
        self._done: set[str] = set()
        self._begun: dict[Prefetch, asyncio.Task[None]] = {}
        self._lane = ThreadPoolExecutor(1, "prefetch", initializer=_yield_to_others)

    @property
    def owners(self) -> set[str]:
        """The replicas whose images are, or were just, asked for."""
        hints = [*self._hints, *self._begun]
        return {owner_name(hint.job, hint.rank) for hint in hints}

    def order(self, hints: Sequence[Prefetch]) -> None:
        """Other hints: begin with those that are new, forget those that are gone."""
        self._hints = list(hints)
        self._done &= {hint.manifest for hint in hints}
        for hint in hints:
            if hint.manifest not in self._done and hint not in self._begun:
                self._begun[hint] = asyncio.create_task(self._fetch(hint))
        self._tell()

    async def settled(self, owner: str) -> None:
        """Wait until nothing of a replica is under way: two fetches of it would share the time."""
        under_way = [
            task for hint, task in self._begun.items() if owner_name(hint.job, hint.rank) == owner
        ]
        if under_way:
            await asyncio.wait(under_way)

    def close(self) -> None:
        """Begin nothing more."""
        for task in self._begun.values():
            task.cancel()
        self._lane.shutdown(wait=False, cancel_futures=True)

    async def _fetch(self, hint: Prefetch) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._lane, fetch_ahead, self._node, hint)
        except (CheckpointError, OSError) as error:
            log.warning("job %d, rank %d: not fetched ahead: %s", hint.job, hint.rank, error)
        finally:
            del self._begun[hint]
        if hint in self._hints:
            self._done.add(hint.manifest)
            self._tell()

    def _tell(self) -> None:
        self._node.board.prefetch(sorted(self._done))


def fetch_ahead(node: Node, hint: Prefetch) -> None:
    """See that an image, or one much like it, is kept here. Blocking."""
    owner = owner_name(hint.job, hint.rank)
    if node.kept.find(owner, hint.manifest) is not None:
        return
    wanted = node.store.load(hint.manifest)
    newest = node.kept.newest(owner)
    if newest is not None and _likeness(wanted, newest) >= NEAR:
        return
    images = _place(node.config.state)
    with node.kept.hold(owner):
        fetched = fetch_image(node.store, hint.manifest, images, None)
        node.kept.keep(owner, hint.manifest, fetched.manifest, images)


def sweep(state: Path) -> None:
    """Remove what a killed agent had begun to fetch."""
    for path in state.glob("*ahead-*"):
        shutil.rmtree(path, ignore_errors=True)


def _place(state: Path) -> Path:
    return state / f"ahead-{secrets.token_hex(6)}"


def _likeness(wanted: Manifest, base: Base) -> float:
    there = {extent.digest for extent in base.manifest.extents()}
    lengths = [(extent.length, extent.digest in there) for extent in wanted.extents()]
    total = sum(length for length, _ in lengths)
    return sum(length for length, known in lengths if known) / total if total else 1.0


def _yield_to_others() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
