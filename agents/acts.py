"""The acts on a replica: each brings it one stage further, and may be repeated after a crash."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.drivers.base import DriverError
from agents.guard import write_target
from agents.lifecycle import Act, Stage
from agents.node import thread
from agents.protocol import Desired, Want

if TYPE_CHECKING:
    from agents.checkpoints import Stored
    from agents.replica import Replica

CLEAN: dict[str, Any] = {"error": "", "detail": ""}


class Stopwatch:
    """Seconds of the phases of one act."""

    def __init__(self, seconds: dict[str, float] | None = None) -> None:
        self.seconds = dict(seconds or {})

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what is done within."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - start, 6)


def _desired(replica: Replica) -> Desired:
    """The wish as the portal sent it, else as it was journalled."""
    return replica.desired or replica.record.desired


async def prepare(replica: Replica) -> None:
    """Make the folder and fill the workspace."""
    node, launch = replica.node, _desired(replica).launch
    if launch is None:
        raise DriverError("launch-missing", "The portal named neither a command nor an image.")
    watch = Stopwatch()
    await replica.mark(Stage.NEW)
    with watch.phase("prepare"):
        await thread(node.workspaces.prepare, replica.key, launch.source)
    await replica.mark(Stage.PREPARED, durable=False, phases=watch.seconds, **CLEAN)


async def start(replica: Replica) -> None:
    """Start the command."""
    node, watch = replica.node, Stopwatch(replica.record.fact.phases)
    task = node.task(_desired(replica))
    await replica.mark(Stage.STARTING)
    _open_output(replica)
    with watch.phase("launch"):
        await thread(node.driver.start, task)
    await thread(write_target, node.driver, task)
    await replica.mark(
        Stage.RUNNING, durable=False, phases=watch.seconds, started_at=time.time(), **CLEAN
    )


async def restore(replica: Replica) -> None:
    """Fetch the image and make the replica from it, frozen and with its gate closed."""
    from agents.checkpoints import fetch_image

    node, desired, watch = replica.node, _desired(replica), Stopwatch()
    assert desired.image is not None
    task = node.task(desired)
    images, workspace = task.folder / "images", task.folder / "workspace"
    await replica.mark(Stage.RESTORING)
    await thread(node.driver.remove, task)
    await thread(_empty, images, workspace)
    with watch.phase("fetch"):
        store = await thread(lambda: node.store)
        await thread(fetch_image, store, desired.image.manifest, images, workspace)
    _open_output(replica)
    with watch.phase("restore"):
        await thread(node.driver.restore, task, images)
    await thread(write_target, node.driver, task)
    await replica.mark(Stage.RESTORED, phases=watch.seconds, **CLEAN)
    await thread(shutil.rmtree, images, ignore_errors=True)


async def freeze(replica: Replica) -> None:
    """Close the gate and stop it from running."""
    node, watch = replica.node, Stopwatch()
    task = node.task(_desired(replica))
    with watch.phase("freeze"):
        await thread(node.driver.freeze, task)
    await replica.mark(Stage.FROZEN, phases=watch.seconds, stopped_at=time.time(), **CLEAN)


async def thaw(replica: Replica) -> None:
    """Let it run on."""
    node = replica.node
    fresh = replica.record.stage is Stage.RESTORED
    watch = Stopwatch(replica.record.fact.phases if fresh else None)
    task = node.task(_desired(replica))
    with watch.phase("resume"):
        await thread(node.driver.thaw, task)
    began = {**CLEAN, "started_at": time.time()} if fresh else CLEAN
    await replica.mark(Stage.RUNNING, phases=watch.seconds, **began)


async def store(replica: Replica) -> None:
    """Write memory and files down; with ``run_on`` let it go on as soon as both are captured."""
    node, desired = replica.node, _desired(replica)
    if replica.saving is not None:
        await asyncio.wait({replica.saving})
    watch = Stopwatch(replica.record.fact.phases)
    task = node.task(desired)
    images, workspace = task.folder / "images", task.folder / "workspace"
    replica.record.tried = desired.checkpoint
    await thread(_empty, images)
    with watch.phase("dump"):
        await thread(node.driver.dump, task, images)
    if desired.run_on and replica.desired is not None and replica.desired.want is Want.STORED:
        with watch.phase("capture"):
            workspace = await thread(node.workspaces.copy, replica.key)
        with watch.phase("resume"):
            await thread(node.driver.thaw, task)
        await replica.mark(Stage.RUNNING, phases=watch.seconds, **CLEAN)
        replica.saving = asyncio.create_task(
            _save(replica, desired.checkpoint, images, workspace, watch)
        )
        return
    await asyncio.gather(
        _keep(replica, Stage.STORED, desired.checkpoint, images, workspace, watch),
        node.outputs.flush(replica.key, 1.0),
    )
    await thread(shutil.rmtree, images, ignore_errors=True)


async def _keep(
    replica: Replica,
    stage: Stage | None,
    number: int,
    images: Path,
    workspace: Path,
    watch: Stopwatch,
) -> None:
    from agents.checkpoints import store_image

    with watch.phase("store"):
        chunks = await thread(lambda: replica.node.store)
        stored: Stored = await thread(store_image, chunks, images, workspace)
    phases = watch.seconds if stage else {**replica.record.fact.phases, **watch.seconds}
    await replica.mark(
        stage or replica.record.stage,
        checkpoint=number,
        manifest=stored.manifest_key,
        bytes_raw=stored.bytes_raw,
        bytes_new=stored.bytes_new,
        bytes_stored=stored.bytes_stored,
        phases=phases,
        **CLEAN,
    )


async def _save(
    replica: Replica, number: int, images: Path, workspace: Path, watch: Stopwatch
) -> None:
    """Store a captured checkpoint beside the running replica; a failure leaves only a note."""
    try:
        await _keep(replica, None, number, images, workspace, watch)
    except Exception as error:
        if replica.record.stage is not Stage.GONE:
            id = getattr(error, "id", "store-failed")
            await replica.mark(replica.record.stage, durable=False, error=id, detail=str(error))
    finally:
        for folder in (images, workspace):
            await thread(shutil.rmtree, folder, ignore_errors=True)


async def collect(replica: Replica) -> None:
    """End what the command left behind, then store its workspace as its outputs."""
    from agents.checkpoints import store_tree

    node = replica.node
    task = node.task(replica.record.desired)
    await thread(node.driver.stop, task, 0.0)
    chunks = await thread(lambda: node.store)
    stored = await thread(store_tree, chunks, task.folder / "workspace")
    await replica.mark(replica.record.stage, outputs=stored.manifest_key)


async def end(replica: Replica) -> None:
    """Stop it and remove everything of it; a running one that is only cancelled gets its grace."""
    node, stage = replica.node, replica.record.stage
    task = node.bare_task(replica.key)
    graceful = stage is Stage.RUNNING and not replica.superseded
    await thread(node.driver.stop, task, node.config.grace_s if graceful else 0.0)
    if replica.saving is not None:
        await asyncio.wait({replica.saving})
    if stage is not Stage.STORED:
        await node.outputs.flush(replica.key, 1.0)
    node.outputs.close(replica.key)
    await thread(node.driver.remove, task)
    await thread(node.workspaces.remove, replica.key)
    await node.journal.write(replica.key, None)
    replica.record = replica.record.moved(Stage.GONE, stopped_at=time.time(), **CLEAN)
    replica.post()


def _open_output(replica: Replica) -> None:
    fact, marks = replica.record.fact, replica.record.marks
    path = replica.node.workspaces.output(replica.key)
    replica.node.outputs.open(replica.key, fact.job, fact.rank, path, marks)


def _empty(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)


def keep_output(replica: Replica) -> None:
    """After the agent was restarted: go on sending a replica's output."""
    _open_output(replica)


ACTS: dict[Act, Callable[[Replica], Awaitable[None]]] = {
    Act.PREPARE: prepare,
    Act.START: start,
    Act.RESTORE: restore,
    Act.FREEZE: freeze,
    Act.THAW: thaw,
    Act.STORE: store,
    Act.COLLECT: collect,
    Act.END: end,
}
