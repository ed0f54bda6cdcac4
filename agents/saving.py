"""Storing a frozen replica in the chunk store, at a halt or while it runs on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from agents.checkpoints import (
    NEAR,
    CheckpointError,
    Intake,
    Manifest,
    Store,
    Stored,
    store_image,
)
from agents.drivers.base import Task
from agents.lifecycle import Stage
from agents.node import thread
from agents.protocol import Desired, Want
from agents.record import owner_of
from agents.timing import CLEAN, Stopwatch

if TYPE_CHECKING:
    from agents.replica import Replica

log = logging.getLogger("tidepool.saving")


async def store(replica: Replica) -> None:
    """Write memory and files down; with ``run_on`` let it go on as soon as both are captured."""
    node, desired = replica.node, replica.desired or replica.record.desired
    if replica.saving is not None:
        await asyncio.wait({replica.saving})
    watch = Stopwatch(replica.record.fact.phases)
    task = node.held_task(desired)
    replica.record.tried = desired.checkpoint
    with watch.phase("dump"):
        intake = await thread(_dump, replica, task, desired)
    if desired.run_on and _still(replica, desired):
        await _store_running(replica, task, intake, desired.checkpoint, watch)
        return
    _, stored = await asyncio.gather(
        node.outputs.flush(replica.key, 1.0), _put(replica, task, intake, watch, captured=None)
    )
    await _note(replica, Stage.STORED, desired.checkpoint, stored, watch)
    await _keep(replica, task, intake, stored)


def _dump(replica: Replica, task: Task, desired: Desired) -> Intake:
    """Dump it, and write only those pages that no kept image has.

    An image that is kept goes on serving until it has too little in common with what runs here.
    """
    node = replica.node
    images = task.folder / "images"
    shutil.rmtree(images, ignore_errors=True)
    stale = desired.run_on and replica.likeness < NEAR
    base = None if stale else node.kept.newest(owner_of(desired))
    window = node.store.blobs.window
    with Intake(images, task.folder / "pages", base=base, window=window) as intake:
        node.driver.dump(task, images)
    replica.likeness = intake.likeness
    return intake


def _still(replica: Replica, desired: Desired) -> bool:
    now = replica.desired
    return now is not None and now.want is Want.STORED and now.run_on == desired.run_on


async def _store_running(
    replica: Replica, task: Task, intake: Intake, number: int, watch: Stopwatch
) -> None:
    """Thaw it when its files have been read: its memory lies in the images."""
    loop = asyncio.get_running_loop()
    captured, released = asyncio.Event(), asyncio.Event()

    def tell() -> None:
        loop.call_soon_threadsafe(captured.set)

    put = asyncio.create_task(_put(replica, task, intake, watch, tell))
    waiting = asyncio.create_task(captured.wait())
    with watch.phase("capture"):
        await asyncio.wait({waiting, put}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if put.done() and (error := put.exception()) is not None:
        raise error
    replica.saving = asyncio.create_task(
        _finish(replica, task, intake, number, watch, put, released)
    )
    try:
        with watch.phase("resume"):
            await thread(replica.node.driver.thaw, task)
        await replica.mark(Stage.RUNNING, phases=watch.seconds, **CLEAN)
    finally:
        released.set()


async def _finish(
    replica: Replica,
    task: Task,
    intake: Intake,
    number: int,
    watch: Stopwatch,
    put: asyncio.Task[Stored],
    released: asyncio.Event,
) -> None:
    """See a captured checkpoint into the store while the replica runs; a failure is only noted."""
    await released.wait()
    try:
        stored = await put
        await _note(replica, replica.record.stage, number, stored, watch)
        await _keep(replica, task, intake, stored)
    except (CheckpointError, OSError) as error:
        log.warning("%s: checkpoint %d was not stored: %s", replica.key, number, error)
        id = getattr(error, "id", "store-failed")
        await replica.mark(replica.record.stage, durable=False, error=id, detail=str(error))
    finally:
        await thread(shutil.rmtree, task.folder / "images", ignore_errors=True)
        await thread(intake.discard)


async def _keep(replica: Replica, task: Task, intake: Intake, stored: Stored) -> None:
    """Let whole images stay on this node, where the replica may be restored from them."""
    kept, owner = replica.node.kept, owner_of(replica.record.desired)
    images = task.folder / "images"
    if not intake.lean:
        await thread(kept.keep, owner, stored.manifest_key, stored.manifest, images)
    await thread(intake.discard)


async def _put(
    replica: Replica,
    task: Task,
    intake: Intake,
    watch: Stopwatch,
    captured: Callable[[], None] | None,
) -> Stored:
    """Store images and workspace; files that the last manifest knows are not read again."""
    node = replica.node

    def put() -> Stored:
        with watch.phase("store"), node.kept.hold(owner_of(replica.record.desired)):
            return store_image(
                node.store,
                task.folder / "images",
                task.folder / "workspace",
                intake=intake,
                base=_load(node.store, replica.record.fact.manifest),
                captured=captured,
            )

    return await thread(put)


def _load(store: Store, manifest: str) -> Manifest | None:
    with contextlib.suppress(CheckpointError):
        return store.load(manifest) if manifest else None
    return None


async def _note(
    replica: Replica, stage: Stage, number: int, stored: Stored, watch: Stopwatch
) -> None:
    await replica.mark(
        stage,
        checkpoint=number,
        manifest=stored.manifest_key,
        bytes_raw=stored.bytes_raw,
        bytes_new=stored.bytes_new,
        bytes_stored=stored.bytes_stored,
        phases={**replica.record.fact.phases, **watch.seconds},
        **CLEAN,
    )
