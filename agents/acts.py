"""The acts on a replica: each brings it one stage further, and may be repeated after a crash."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agents.bringing import Brought, bring, settle
from agents.checkpoints import CheckpointError, store_tree
from agents.drivers.base import DriverError
from agents.guard import write_target
from agents.lifecycle import Act, Stage
from agents.limiting import limit, limits_of, profile
from agents.node import Node, thread
from agents.protocol import Desired
from agents.record import owner_of
from agents.saving import store
from agents.timing import CLEAN, Stopwatch

if TYPE_CHECKING:
    from agents.replica import Replica

LINGER_S = 1.5
"""Seconds for which what is left of a replica that went elsewhere is not cleared away."""

log = logging.getLogger("tidepool.acts")


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
    open_output(replica)
    with watch.phase("launch"):
        await thread(node.driver.start, task)
    replica.limits = limits_of(_desired(replica))
    await thread(write_target, node.driver, task)
    await replica.mark(
        Stage.RUNNING, durable=False, phases=watch.seconds, started_at=time.time(), **CLEAN
    )


async def restore(replica: Replica) -> None:
    """Fetch the image and make the replica from it, frozen and with its gate closed.

    A parked one has its image and its workspace in its folder already. What this node keeps of the
    replica is not fetched again; should that prove of no use, it is dropped and all is fetched.
    """
    node, desired, watch = replica.node, _desired(replica), Stopwatch()
    task, owner = node.task(desired), owner_of(desired)
    parked = replica.record.stage is Stage.PARKED
    if not parked:
        await replica.mark(Stage.RESTORING)
    await thread(node.driver.remove, task)
    with node.kept.hold(owner):
        brought = Brought(images=task.folder / "images")
        if not parked:
            assert desired.image is not None
            with watch.phase("fetch"):
                brought = await _brought(node, owner, desired.image.manifest, task.folder)
        open_output(replica)
        try:
            with watch.phase("restore"):
                await thread(node.driver.restore, task, brought.images)
        except DriverError as error:
            if brought.base is None:
                raise
            log.warning("%s: all of its image is fetched, because: %s", replica.key, error)
            assert desired.image is not None
            manifest = desired.image.manifest
            brought = await thread(bring, node, owner, manifest, task.folder, whole=True)
            with watch.phase("restore"):
                await thread(node.driver.restore, task, brought.images)
        replica.limits = limits_of(desired)
        await thread(write_target, node.driver, task)
        await replica.mark(Stage.RESTORED, phases=watch.seconds, **CLEAN)
    await thread(settle, node, owner, brought, task.folder / "images")


async def _brought(node: Node, owner: str, manifest: str, folder: Path) -> Brought:
    """Have the image in place: it was made ready ahead, or is brought now."""
    await node.prefetching.settled(owner)
    ahead = await node.prefetching.take(manifest, folder)
    return ahead if ahead is not None else await thread(bring, node, owner, manifest, folder)


async def freeze(replica: Replica) -> None:
    """Stop it from running and close its gate."""
    node, watch = replica.node, Stopwatch()
    task = node.held_task(_desired(replica))
    with watch.phase("freeze"):
        await thread(node.driver.freeze, task)
    await replica.mark(Stage.FROZEN, phases=watch.seconds, stopped_at=time.time(), **CLEAN)


async def thaw(replica: Replica) -> None:
    """Let it run on."""
    node = replica.node
    fresh = replica.record.stage is Stage.RESTORED
    watch = Stopwatch(replica.record.fact.phases if fresh else None)
    task = node.held_task(_desired(replica))
    with watch.phase("resume"):
        await thread(node.driver.thaw, task)
    began = {**CLEAN, "started_at": time.time()} if fresh else CLEAN
    await replica.mark(Stage.RUNNING, phases=watch.seconds, **began)


async def park(replica: Replica) -> None:
    """Write it into its own folder and end it; one that cannot be written is ended as it is."""
    node = replica.node
    if replica.saving is not None:
        await asyncio.wait({replica.saving})
    task = node.held_task(_desired(replica))
    images = task.folder / "images"
    await thread(shutil.rmtree, images, ignore_errors=True)
    try:
        await thread(node.driver.freeze, task)
        await thread(node.driver.dump, task, images)
    except DriverError as error:
        await thread(node.driver.stop, task, node.config.grace_s)
        await thread(node.driver.remove, task)
        told = f"The node's agent was stopped, and it could not be stored: {error}"
        await replica.mark(Stage.FAILED, error="agent-stopped", detail=told, stopped_at=time.time())
        return
    await replica.mark(Stage.PARKED)
    await thread(node.driver.remove, task)


async def collect(replica: Replica) -> None:
    """End what the command left behind, then store its workspace as its outputs."""
    node = replica.node
    task = node.held_task(replica.record.desired)
    await thread(node.driver.stop, task, 0.0)
    chunks = await thread(lambda: node.store)
    stored = await thread(store_tree, chunks, task.folder / "workspace")
    await replica.mark(replica.record.stage, outputs=stored.manifest_key)


async def end(replica: Replica) -> None:
    """Stop it and remove everything of it; a running one that is only cancelled gets its grace.

    One that goes on elsewhere is killed at once, and cleared away when that is under way: the node
    may be where it, or a peer of it, is being restored just now.
    """
    node, stage = replica.node, replica.record.stage
    task = node.bare_task(replica.key)
    graceful = stage is Stage.RUNNING and not replica.superseded
    await thread(node.driver.stop, task, node.config.grace_s if graceful else 0.0)
    if stage is Stage.STORED and replica.desired is None:
        replica.over.set()
        await asyncio.sleep(LINGER_S)
    if replica.saving is not None:
        await asyncio.wait({replica.saving})
    if stage is not Stage.STORED:
        await node.outputs.flush(replica.key, 1.0)
    node.outputs.close(replica.key)
    outputs = await _last_files(replica) if graceful else replica.record.fact.outputs
    await thread(node.driver.remove, task)
    await thread(node.workspaces.remove, replica.key)
    await node.journal.write(replica.key, None)
    replica.record = replica.record.moved(
        Stage.GONE, stopped_at=time.time(), outputs=outputs, **CLEAN
    )
    replica.post()


async def _last_files(replica: Replica) -> str:
    """Keep the files of one that is ended by the portal; a failure must not keep it alive."""
    if replica.desired is None:
        return ""
    folder = replica.node.held_task(replica.record.desired).folder / "workspace"
    try:
        chunks = await thread(lambda: replica.node.store)
        stored = await thread(store_tree, chunks, folder)
    except (CheckpointError, OSError) as error:
        log.warning("%s: its files are not kept: %s", replica.key, error)
        return ""
    return stored.manifest_key


def open_output(replica: Replica) -> None:
    """Send what it prints from now on, or go on sending after the agent was restarted."""
    fact, marks = replica.record.fact, replica.record.marks
    path = replica.node.workspaces.output(replica.key)
    replica.node.outputs.open(replica.key, fact.job, fact.rank, path, marks, epoch=fact.epoch)


def _empty(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)


ACTS: dict[Act, Callable[[Replica], Awaitable[None]]] = {
    Act.PREPARE: prepare,
    Act.START: start,
    Act.RESTORE: restore,
    Act.FREEZE: freeze,
    Act.THAW: thaw,
    Act.STORE: store,
    Act.PARK: park,
    Act.LIMIT: limit,
    Act.PROFILE: profile,
    Act.COLLECT: collect,
    Act.END: end,
}
