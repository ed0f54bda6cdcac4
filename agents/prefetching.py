"""Fetching images ahead: while a replica still runs elsewhere, most of it comes here.

What is fetched first is an earlier image of it. When it is stopped, only what has changed since is
left to store, to fetch and to write. As soon as it is stored, even that is fetched, while its peers
are still being stored and the cut is not committed: the image is then ready to be restored from,
and waits. All this is done for hints; nothing depends on it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agents.bringing import Brought, bring, move_in
from agents.checkpoints import NEAR, Base, CheckpointError, Manifest, fetch_image
from agents.protocol import Prefetch
from agents.record import owner_name

if TYPE_CHECKING:
    from agents.node import Node

NICENESS = 10

log = logging.getLogger("tidepool.prefetching")


@dataclass(frozen=True, slots=True)
class _Ready:
    """An image that only waits to be restored from; what it leans on is held here meanwhile."""

    brought: Brought
    folder: Path
    held: ExitStack


class Prefetching:
    """The hints of one node and how far they are."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._hints: list[Prefetch] = []
        self._expected: Collection[str] = ()
        self._done: set[Prefetch] = set()
        self._ready: dict[str, _Ready] = {}
        self._begun: dict[Prefetch, asyncio.Task[None]] = {}
        self._lane = ThreadPoolExecutor(1, "prefetch", initializer=_yield_to_others)
        self._last = ThreadPoolExecutor(4, "arrive")

    @property
    def owners(self) -> set[str]:
        """The replicas whose images are, or were just, asked for."""
        hints = [*self._hints, *self._begun]
        return {owner_name(hint.job, hint.rank) for hint in hints}

    def order(self, hints: Sequence[Prefetch], expected: Collection[str] = ()) -> None:
        """Other hints: begin with those that are new, forget those that are gone.

        ``expected`` are the manifests of what is to be restored here now.
        """
        self._hints = list(hints)
        self._expected = expected
        self._done &= set(hints)
        for hint in hints:
            had = hint in self._done or (hint.final and hint.manifest in self._ready)
            if not had and hint not in self._begun:
                self._begun[hint] = asyncio.create_task(self._fetch(hint))
        self._forget()
        self._tell()

    async def settled(self, owner: str) -> None:
        """Wait until nothing of a replica is under way: two fetches of it would share the time."""
        under_way = [
            task for hint, task in self._begun.items() if owner_name(hint.job, hint.rank) == owner
        ]
        if under_way:
            await asyncio.wait(under_way)

    async def take(self, manifest: str, folder: Path) -> Brought | None:
        """Move an image that was made ready into a replica's folder, if there is one."""
        ready = self._ready.pop(manifest, None)
        if ready is None:
            return None
        return await asyncio.to_thread(_hand_over, self._node, ready, folder)

    def close(self) -> None:
        """Begin nothing more."""
        for task in self._begun.values():
            task.cancel()
        for lane in (self._lane, self._last):
            lane.shutdown(wait=False, cancel_futures=True)

    async def _fetch(self, hint: Prefetch) -> None:
        loop = asyncio.get_running_loop()
        done = True
        try:
            if hint.final:
                ready = await loop.run_in_executor(self._last, make_ready, self._node, hint)
                self._ready[hint.manifest] = ready
                done = False
            else:
                await loop.run_in_executor(self._lane, fetch_ahead, self._node, hint)
        except (CheckpointError, OSError) as error:
            log.warning("job %d, rank %d: not fetched ahead: %s", hint.job, hint.rank, error)
        finally:
            del self._begun[hint]
        self._forget()
        if done and hint in self._hints:
            self._done.add(hint)
            self._tell()

    def _forget(self) -> None:
        """Drop what was made ready for a move that was called off."""
        wanted = {*self._expected, *(hint.manifest for hint in self._hints if hint.final)}
        for manifest in self._ready.keys() - wanted:
            ready = self._ready.pop(manifest)
            ready.held.close()
            self._lane.submit(shutil.rmtree, ready.folder, ignore_errors=True)

    def _tell(self) -> None:
        self._node.board.prefetch(sorted({h.manifest for h in self._done if not h.final}))


def fetch_ahead(node: Node, hint: Prefetch) -> None:
    """See that an image, or one much like it, is kept here. Blocking."""
    owner = owner_name(hint.job, hint.rank)
    with node.kept.hold(owner):
        if node.kept.find(owner, hint.manifest) is None:
            _fetch_whole(node, owner, hint.manifest)
        if (base := node.kept.newest(owner)) is not None:
            base.known  # noqa: B018 - what is asked of it when the replica has stopped


def _fetch_whole(node: Node, owner: str, manifest: str) -> None:
    wanted = node.store.load(manifest)
    newest = node.kept.newest(owner)
    if newest is None or _likeness(wanted, newest) < NEAR:
        images = _place(node.config.state) / "images"
        try:
            fetched = fetch_image(node.store, manifest, images, None)
            node.kept.keep(owner, manifest, fetched.manifest, images)
        finally:
            shutil.rmtree(images.parent, ignore_errors=True)


def make_ready(node: Node, hint: Prefetch) -> _Ready:
    """Bring all that a replica will be restored from to a folder of its own. Blocking."""
    owner, folder = owner_name(hint.job, hint.rank), _place(node.config.state)
    with ExitStack() as held:
        held.enter_context(node.kept.hold(owner))
        try:
            brought = bring(node, owner, hint.manifest, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return _Ready(brought, folder, held.pop_all())


def _hand_over(node: Node, ready: _Ready, folder: Path) -> Brought | None:
    with ready.held:
        base = ready.brought.base
        try:
            if base is None or node.kept.stands(base):
                return move_in(ready.brought, ready.folder, folder)
        except OSError as error:
            log.warning("%s: what was made ready for it is of no use: %s", folder.name, error)
        shutil.rmtree(ready.folder, ignore_errors=True)
        return None


def sweep(state: Path) -> None:
    """Remove what a killed agent had begun to fetch, or had made ready."""
    shutil.rmtree(state / "ahead", ignore_errors=True)


def _place(state: Path) -> Path:
    """A new folder, as deep in the state folder as that of a replica: images lean by a link."""
    folder = state / "ahead"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / secrets.token_hex(6)


def _likeness(wanted: Manifest, base: Base) -> float:
    there = {extent.digest for extent in base.manifest.extents()}
    lengths = [(extent.length, extent.digest in there) for extent in wanted.extents()]
    total = sum(length for length, _ in lengths)
    return sum(length for length, known in lengths if known) / total if total else 1.0


def _yield_to_others() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
