"""Storing a frozen replica in the chunk store, at a halt or while it runs on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agents.checkpoints import CheckpointError, Manifest, Store, Stored, store_image
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
    images = task.folder / "images"
    replica.record.tried = desired.checkpoint
    await thread(shutil.rmtree, images, ignore_errors=True)
    with watch.phase("dump"):
        await thread(node.driver.dump, task, images)
    if desired.run_on and _still(replica, desired):
        await _store_running(replica, task, desired.checkpoint, watch)
        return
    _, stored = await asyncio.gather(
        node.outputs.flush(replica.key, 1.0), _put(replica, task, watch, captured=None)
    )
    await _note(replica, Stage.STORED, desired.checkpoint, stored, watch)
    await _keep(replica, stored, images)


def _still(replica: Replica, desired: Desired) -> bool:
    now = replica.desired
    return now is not None and now.want is Want.STORED and now.run_on == desired.run_on


async def _store_running(replica: Replica, task: Task, number: int, watch: Stopwatch) -> None:
    """Thaw it when its files have been read: its memory lies in the images."""
    loop = asyncio.get_running_loop()
    captured, released = asyncio.Event(), asyncio.Event()

    def tell() -> None:
        loop.call_soon_threadsafe(captured.set)

    put = asyncio.create_task(_put(replica, task, watch, tell))
    waiting = asyncio.create_task(captured.wait())
    with watch.phase("capture"):
        await asyncio.wait({waiting, put}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if put.done() and (error := put.exception()) is not None:
        raise error
    replica.saving = asyncio.create_task(_finish(replica, task, number, watch, put, released))
    try:
        with watch.phase("resume"):
            await thread(replica.node.driver.thaw, task)
        await replica.mark(Stage.RUNNING, phases=watch.seconds, **CLEAN)
    finally:
        released.set()


async def _finish(
    replica: Replica,
    task: Task,
    number: int,
    watch: Stopwatch,
    put: asyncio.Task[Stored],
    released: asyncio.Event,
) -> None:
    """See a captured checkpoint into the store while the replica runs; a failure is only noted."""
    await released.wait()
    images = task.folder / "images"
    try:
        stored = await put
        await _note(replica, replica.record.stage, number, stored, watch)
        await _keep(replica, stored, images)
    except (CheckpointError, OSError) as error:
        log.warning("%s: checkpoint %d was not stored: %s", replica.key, number, error)
        id = getattr(error, "id", "store-failed")
        await replica.mark(replica.record.stage, durable=False, error=id, detail=str(error))
    finally:
        await thread(shutil.rmtree, images, ignore_errors=True)


async def _keep(replica: Replica, stored: Stored, images: Path) -> None:
    """Let the dumped images stay on this node, where the replica may be restored from them."""
    kept, owner = replica.node.kept, owner_of(replica.record.desired)
    await thread(kept.keep, owner, stored.manifest_key, stored.manifest, images)


async def _put(
    replica: Replica, task: Task, watch: Stopwatch, captured: Callable[[], None] | None
) -> Stored:
    """Store images and workspace; files that the last manifest knows are not read again."""

    def put() -> Stored:
        with watch.phase("store"):
            store = replica.node.store
            return store_image(
                store,
                task.folder / "images",
                task.folder / "workspace",
                base=_load(store, replica.record.fact.manifest),
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
