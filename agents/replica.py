"""One replica's placement on this node, driven toward what is wanted, one act at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Sequence
from typing import Any

from agents import acts
from agents.checkpoints import CheckpointError
from agents.devices.base import DeviceError
from agents.drivers.base import Condition, DriverError, Task
from agents.lifecycle import ALIVE, Act, Contact, Stage, choose
from agents.limiting import Limits, limits_of, profiled
from agents.node import Node, thread
from agents.protocol import Desired, Want
from agents.record import Record, without_launch
from agents.timing import CLEAN
from agents.waiting import either
from agents.watch import until_ended

log = logging.getLogger("tidepool.replica")

RETRY_S = (0.2, 5.0)
COLLECT_TRIES = 3
PATIENCE_S = {Act.PREPARE: 60.0, Act.RESTORE: 60.0, Act.COLLECT: 1800.0}
"""Seconds for which an act is tried again while its error may pass by itself."""
PASSING = {"portal-unreachable", "store-unreachable", "repository-unreachable"}
CODE_TRIES = 1000
BEGINNING = (Stage.NEW, Stage.PREPARED, Stage.STARTING)
"""Stages that are soon over, and that the portal need not know of unless peers wait for it."""
HARMLESS = (Act.PREPARE, Act.COLLECT)
"""Acts that nothing depends on when the agent ends in the midst of them."""
AUDIT_S = 5.0
"""Seconds after which a replica that just runs is looked at all the same."""


class Replica:
    """The newest wish always wins after each act; an act that was done is safe to do again."""

    def __init__(
        self,
        node: Node,
        record: Record,
        *,
        contact: Contact = Contact.GOOD,
        elders: Sequence[Replica] = (),
    ) -> None:
        self.node = node
        self.record = record
        self.key = record.key
        self.desired: Desired | None = record.desired
        self.contact = contact
        self.elders = list(elders)
        """Older placements of the same rank here; they must be over before this one begins."""
        self.superseded = False
        self.over = asyncio.Event()
        """Nothing of it can run any more; what it leaves may still be there."""
        self.saving: asyncio.Task[None] | None = None
        """A periodic checkpoint on its way to the store while the replica runs on."""
        self.likeness = 1.0
        """How much of its last dump was in the image that is kept here."""
        self.limits: Limits | None = None
        """What decided the CPUs that it is held to; ``None``: not known."""
        self.disturbed = 0
        """How often in a row measuring it was broken off."""
        self._changed = asyncio.Event()
        self._tries = 0
        self._failing_since: float | None = None
        self._left_uncollected = False
        self._acting: Act | None = None
        self.post()

    def order(self, desired: Desired | None, contact: Contact = Contact.GOOD) -> None:
        """Another wish, or another standing with the portal."""
        if desired is not None:
            self._renew(desired)
        if (self.desired, self.contact) != (desired, contact):
            self.desired, self.contact = desired, contact
            self._tries, self._left_uncollected = 0, False
            self._changed.set()

    def _renew(self, desired: Desired) -> None:
        """Keep the wish; another act asked for takes an earlier one's error off the board."""
        old, record = self.record.desired, self.record
        record.desired = without_launch(desired)
        leaving = (Want.FROZEN, Want.STORED)
        same = old.want == desired.want or (old.want in leaving and desired.want in leaving)
        asked_again = same and old.checkpoint == desired.checkpoint
        if record.stage in ALIVE and record.fact.error and not asked_again:
            self.record = record.moved(record.stage, **CLEAN)
            self.node.journal.note(self.key, self.record)
            self.post()

    def post(self) -> None:
        """Put its fact on the board."""
        record = self.record
        held = record.desired.hold and record.stage is Stage.PREPARED
        dull = record.stage in BEGINNING and not held and not record.fact.error
        self.node.board.put(self.key, record.fact, dull=dull)

    async def mark(self, stage: Stage, *, durable: bool = True, **changes: Any) -> None:
        """Enter a stage: journal it, then tell it. ``changes`` are of the fact."""
        self.record = self.record.moved(stage, **changes)
        if durable:
            await self.node.journal.write(self.key, self.record)
        else:
            self.node.journal.note(self.key, self.record)
        self.post()

    def choose(self) -> Act:
        """The next act."""
        return choose(
            self.desired,
            self.record.stage,
            checkpoint=self.record.fact.checkpoint,
            tried=self.record.tried,
            collected=bool(self.record.fact.outputs) or self._left_uncollected,
            contact=self.contact,
            limited=self.limits == limits_of(self.desired or self.record.desired),
            profiled=profiled(self),
        )

    async def another_wish(self) -> None:
        """Wait until something else is wanted than when the present act was chosen."""
        await self._changed.wait()

    async def settled(self) -> None:
        """Wait until nothing of it runs; for an agent that is closing."""
        while self.record.stage in ALIVE or self._acting not in (None, *HARMLESS):
            await asyncio.sleep(0.01)

    async def live(self) -> None:
        """Act until it is gone."""
        for elder in self.elders:
            await elder.over.wait()
        self.elders.clear()
        try:
            while True:
                self._changed.clear()
                act = self.choose()
                if act is Act.FORGET:
                    return
                if act is Act.REST:
                    await self._rest()
                    continue
                self._acting = act
                done = await self._perform(act)
                self._acting = None
                if not done:
                    await self._pause()
        finally:
            self.over.set()

    async def _perform(self, act: Act) -> bool:
        """Do it; false when it failed and should be tried again in a while."""
        log.debug("%s: %s", self.key, act)
        try:
            await acts.ACTS[act](self)
        except (DriverError, DeviceError, CheckpointError, OSError) as error:
            return await self._failed(act, _id_of(error), str(error))
        except Exception as error:
            log.exception("%s: %s went wrong", self.key, act)
            return await self._failed(act, "agent-error", f"{type(error).__name__}: {error}")
        self._tries = 0
        self._failing_since = None
        return True

    async def _failed(self, act: Act, id: str, sentence: str) -> bool:
        log.warning("%s: %s failed: %s: %s", self.key, act, id, sentence)
        self._tries += 1
        if self._may_pass(act, id):
            if act in (Act.PREPARE, Act.RESTORE):
                await self.mark(self.record.stage, durable=False, detail=sentence)
            return False
        told: dict[str, Any] = {"error": id, "detail": sentence}
        if act in (Act.PREPARE, Act.START, Act.RESTORE):
            await self.clear()
            await self.mark(Stage.FAILED, **told)
            return True
        if act in (Act.FREEZE, Act.THAW, Act.STORE, Act.LIMIT) and await self.notice_end():
            return True
        if act is Act.STORE:
            await self.mark(Stage.FROZEN, **told)
            return True
        self._left_uncollected = act is Act.COLLECT
        await self.mark(self.record.stage, durable=False, **told)
        return self._left_uncollected

    def _may_pass(self, act: Act, id: str) -> bool:
        """Whether to try again before an error is told: what is told has consequences."""
        passing = id in PASSING or (act is Act.COLLECT and id == "disk-full")
        if not passing or act not in PATIENCE_S:
            return act is Act.COLLECT and self._tries < COLLECT_TRIES
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        return now - self._failing_since < PATIENCE_S[act]

    async def clear(self) -> None:
        """Remove what a failed beginning left; best effort, ending the replica does it again."""
        with contextlib.suppress(DriverError, OSError):
            await thread(self.node.driver.remove, self.node.bare_task(self.key))

    async def _pause(self) -> None:
        least, most = RETRY_S
        delay = min(most, least * 2**self._tries) * random.uniform(0.5, 1.0)
        await either(self._changed, delay)

    async def _rest(self) -> None:
        """Wait for another wish, or for the end of what runs."""
        if self.record.stage not in ALIVE:
            await self._changed.wait()
            return
        task = self.node.held_task(self.record.desired)
        ended = asyncio.ensure_future(until_ended(self.node.driver, task))
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({ended, changed}, timeout=AUDIT_S, return_when="FIRST_COMPLETED")
            quiet = not changed.done()
        finally:
            for future in (ended, changed):
                future.cancel()
            await asyncio.gather(ended, changed, return_exceptions=True)
        if quiet:
            await self.notice_end()

    async def notice_end(self) -> bool:
        """Look whether it ended by itself, or was frozen by the guard, and mark it so."""
        condition = await self._condition(self.node.held_task(self.record.desired))
        if condition.state == "exited":
            await self._exited(condition)
            return True
        if condition.state == "gone":
            await self.mark(
                Stage.FAILED, error="replica-lost", detail="Its processes vanished from the node."
            )
            return True
        if condition.state == "frozen" and self.record.stage is Stage.RUNNING:
            await self.mark(Stage.FROZEN, stopped_at=time.time())
        return False

    async def _condition(self, task: Task) -> Condition:
        """What it is; an end whose exit code is still being collected is waited for."""
        for _ in range(CODE_TRIES):
            condition = await thread(self.node.driver.inspect, task)
            if condition.state != "exited" or condition.exit_code is not None:
                return condition
            await asyncio.sleep(0.01)
        return Condition(state="exited", exit_code=255)

    async def _exited(self, condition: Condition) -> None:
        await self.node.outputs.flush(self.key, 2.0)
        starved = condition.out_of_memory
        await self.mark(
            Stage.EXITED,
            exit_code=condition.exit_code,
            stopped_at=time.time(),
            error="out-of-memory" if starved else "",
            detail="It used more memory than the job asked for; ask for more." if starved else "",
        )


def _id_of(error: Exception) -> str:
    if isinstance(error, DriverError | CheckpointError):
        return error.id
    if isinstance(error, DeviceError):
        return "device-unknown"
    return "disk-full" if getattr(error, "errno", 0) == 28 else "node-error"
