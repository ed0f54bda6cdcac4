"""The agent: recovers what it left, listens to the portal, gives each replica its wish."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import psutil

from agents import acts
from agents.checkpoints import let_go, prepare
from agents.devices.base import DeviceError
from agents.drivers.base import DriverError
from agents.lifecycle import ALIVE, Contact, Stage, recovered
from agents.limiting import limit
from agents.link import Link, Send
from agents.node import Node, thread
from agents.prefetching import sweep
from agents.protocol import (
    Desired,
    DesiredState,
    DeviceInfo,
    Hello,
    OutputHeld,
    ReplicaFact,
    State,
    Want,
    Welcome,
)
from agents.record import Record, key_of, new_record, owner_of
from agents.replica import Replica
from agents.telemetry import Meter, tell_telemetry
from agents.waiting import either

log = logging.getLogger("tidepool.agent")

TIDY_S = 10.0
"""Seconds between two looks at the images that are kept on the node."""
PROBE_S = 10.0
CATCH_UP_S = 2.0
"""Seconds between two looks at the health of the devices."""


class Agent:
    """One node. ``run`` serves until it is cancelled; the replicas live on."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.link = Link(node.config, node.lease, self)
        self.replicas: dict[str, Replica] = {}
        self._lives: set[asyncio.Task[None]] = set()
        self._newest: DesiredState | None = None
        self._arrived = asyncio.Event()
        self._swept = False
        self._declared: list[DeviceInfo] = []

    async def run(self) -> None:
        """Recover, then serve; parks the replicas when it is cancelled and the settings say so."""
        await self.recover()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.link.run())
                group.create_task(self._obey())
                group.create_task(self.node.lease.watch(self._lapse))
                group.create_task(self._tidy())
        finally:
            if self.node.config.on_stop == "park":
                await self.park()
            await self.close()

    async def close(self) -> None:
        """Stop driving the replicas, as they are."""
        self.node.prefetching.close()
        for life in list(self._lives):
            life.cancel()
        await asyncio.gather(*self._lives, return_exceptions=True)

    async def park(self) -> None:
        """Leave nothing running: what can be stored goes on where it was at the next start."""
        for replica in self.replicas.values():
            replica.order(replica.desired, Contact.CLOSING)
        await asyncio.gather(*(replica.settled() for replica in self.replicas.values()))

    async def recover(self) -> None:
        """Take up the replicas of the journal: running ones are adopted as they are."""
        for record in list(self.node.journal.records.values()):
            replica = Replica(self.node, await self._found(record), contact=Contact.NONE)
            if replica.record.stage not in (Stage.NEW, Stage.GONE):
                acts.open_output(replica)
            if replica.record.stage in ALIVE:
                with contextlib.suppress(DriverError, DeviceError, OSError):
                    await limit(replica)
            self._begin(replica)

    async def _found(self, record: Record) -> Record:
        if record.boot != self.node.boot and record.stage in ALIVE:
            return record.moved(
                Stage.FAILED, error="node-restarted", detail="The machine was restarted."
            )
        task = self.node.bare_task(record.key)
        await thread(let_go, task.folder / "images")
        condition = await thread(self.node.driver.inspect, task)
        stage = recovered(record.stage, condition.state)
        log.info("%s: was %s, found %s: %s", record.key, record.stage, condition.state, stage)
        if stage is Stage.EXITED and record.stage is not Stage.EXITED:
            return record.moved(stage, exit_code=condition.exit_code)
        if stage is Stage.FAILED and record.stage is not Stage.FAILED:
            gone = "Its processes vanished while the agent was away."
            return record.moved(stage, error="replica-lost", detail=gone)
        return record.moved(stage)

    def _begin(self, replica: Replica) -> None:
        self.replicas[replica.key] = replica
        life = asyncio.create_task(replica.live(), name=replica.key)
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)
        life.add_done_callback(lambda _: self.replicas.pop(replica.key, None))

    async def _obey(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            state = self._newest
            if state is not None:
                await self.apply(state)

    async def apply(self, state: DesiredState) -> None:
        """Give every replica its newest wish; begin those that are not here yet."""
        if not self._swept:
            await self._sweep()
            self._swept = True
        self.node.board.renew(state.number)
        self.node.prefetching.order(state.prefetch, _images(state))
        wishes = {key_of(desired): desired for desired in state.replicas}
        newest: dict[tuple[int, int], int] = {}
        for desired in state.replicas:
            if desired.want is not Want.ABSENT:
                rank = (desired.job, desired.rank)
                newest[rank] = max(newest.get(rank, 0), desired.epoch)
        for key, replica in self.replicas.items():
            mine = replica.record.desired
            replica.superseded = newest.get((mine.job, mine.rank), 0) > mine.epoch
            replica.order(None if replica.superseded else wishes.get(key))
        for key, desired in sorted(wishes.items(), key=lambda item: item[1].epoch):
            if key not in self.replicas:
                self._admit(key, desired)

    def _admit(self, key: str, desired: Desired) -> None:
        others = [
            r
            for r in self.replicas.values()
            if (r.record.desired.job, r.record.desired.rank) == (desired.job, desired.rank)
        ]
        younger = any(r.record.desired.epoch > desired.epoch for r in others)
        if desired.want is Want.ABSENT or younger:
            absent = ReplicaFact(
                job=desired.job, rank=desired.rank, epoch=desired.epoch, state=State.ABSENT
            )
            self.node.board.put(key, absent)
            return
        replica = Replica(self.node, new_record(desired, self.node.boot), elders=others)
        replica.order(desired)
        self._begin(replica)

    async def _sweep(self) -> None:
        """Remove what is on the node but in no journal."""
        await thread(sweep, self.node.config.state)
        keys = {*await thread(self.node.driver.leftovers), *self.node.workspaces.keys()}
        for key in sorted(keys - self.replicas.keys()):
            log.warning("removing %s, which no journal knows", key)
            with contextlib.suppress(DriverError, OSError):
                await thread(self.node.driver.remove, self.node.bare_task(key))
                await thread(self.node.workspaces.remove, key)

    async def _tidy(self) -> None:
        while True:
            owners = {owner_of(replica.record.desired) for replica in self.replicas.values()}
            await thread(self.node.kept.tidy, owners | self.node.prefetching.owners)
            await asyncio.sleep(TIDY_S)

    def _lapse(self) -> None:
        if self.replicas:
            log.warning("no answer from the portal for most of the lease: freezing every replica")
        for replica in self.replicas.values():
            replica.order(replica.desired, Contact.LAPSED)
        self.link.drop()

    async def hello(self) -> Hello:
        """Describe the node."""
        node = self.node
        self._declared = await thread(node.devices.probe)
        abilities = await thread(node.driver.probe)
        if abilities["checkpoint"].able:
            await thread(prepare)
        return Hello(
            node=node.config.node,
            agent=_release(),
            boot=node.boot,
            address=node.config.underlay,
            cpus=node.cpus,
            memory=psutil.virtual_memory().total,
            devices=self._declared,
            driver=node.driver.name,
            abilities={"device_checkpoint": node.devices.checkpoint(), **abilities},
        )

    def welcome(self, welcome: Welcome) -> None:
        """A new link: go on with the output where the portal's count stands."""
        held = {}
        for name, offset in welcome.output.items():
            job, _, rank = name.partition("/")
            held[int(job), int(rank)] = offset
        self.node.outputs.welcome(held)
        log.info("linked to the portal as %s, lease %g s", welcome.node, welcome.lease_s)

    def desire(self, state: DesiredState) -> None:
        """Another desired state; only the newest counts."""
        self._newest = state
        self._arrived.set()

    def held(self, held: OutputHeld) -> None:
        """The portal holds a replica's output up to here."""
        self.node.outputs.held(held.job, held.rank, held.offset)

    async def talk(self, send: Send) -> None:
        """Send facts, output and telemetry over one link."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tell_facts(send))
            group.create_task(self.node.outputs.pump(send))
            group.create_task(tell_telemetry(Meter(self.node), self._holding, send))
            group.create_task(self._tell_sickness(send))

    async def _tell_facts(self, send: Send) -> None:
        """First what was printed: one that is told stored goes on elsewhere where its output ends.

        A flood is not waited for.
        """
        await either(self.node.outputs.caught_up, CATCH_UP_S)
        await self.node.board.tell(send)

    async def _tell_sickness(self, send: Send) -> None:
        """Say hello again when a device has fallen ill or come back."""
        while True:
            await asyncio.sleep(PROBE_S)
            if await thread(self.node.devices.probe) != self._declared:
                await send(await self.hello())

    def _holding(self) -> Sequence[Record]:
        return [r.record for r in self.replicas.values() if r.record.stage in ALIVE]


def _images(state: DesiredState) -> set[str]:
    """Manifests of what is to be restored here."""
    wanted = [replica for replica in state.replicas if replica.want is not Want.ABSENT]
    return {replica.image.manifest for replica in wanted if replica.image is not None}


def _release() -> str:
    try:
        return f"{version('tidepool')} ({platform.machine()})"
    except PackageNotFoundError:
        return platform.machine()
