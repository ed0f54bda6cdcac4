"""What all replicas of a node share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ParamSpec, TypeVar

from agents.checkpoints import Store, open_store
from agents.config import Config
from agents.devices.base import Devices
from agents.drivers.base import Driver, Task
from agents.environment import environment_of
from agents.facts import Board
from agents.fencing import Lease
from agents.journal import Journal
from agents.output import Outputs
from agents.protocol import Desired, Network
from agents.record import key_of
from agents.stream import Marks
from agents.workspaces import Workspaces

P = ParamSpec("P")
T = TypeVar("T")


def read_boot() -> str:
    """A word that changes when the machine is restarted."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(kw_only=True)
class Node:
    """The agent's belongings, made once."""

    config: Config
    driver: Driver
    devices: Devices
    boot: str = field(default_factory=read_boot)

    def __post_init__(self) -> None:
        config = self.config
        config.state.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(config.state / "journal")
        self.board = Board()
        self.outputs = Outputs(config.output_bytes_per_s, self._mark)
        self.lease = Lease(config.state / "lease")
        self.workspaces = Workspaces(
            config.state, portal=config.portal, token=config.token, cache_bytes=config.cache_bytes
        )

    @cached_property
    def store(self) -> Store:
        """The chunk store; opened when first needed, in a worker thread."""
        return open_store(
            self.config.store,
            cache=self.config.state / "chunks",
            cache_bytes=self.config.cache_bytes,
        )

    def task(self, desired: Desired) -> Task:
        """What the driver needs to know of a replica. Raises ``DeviceError``."""
        key = key_of(desired)
        share = self.devices.share(desired.devices, desired.sharers)
        cpus = share.cpus or desired.cpus
        folder = self.workspaces.folder(key)
        return Task(
            key=key,
            folder=folder,
            output=self.workspaces.output(key),
            command=tuple(desired.launch.command) if desired.launch else (),
            environment=environment_of(
                desired,
                node=self.config.node,
                workspace=str(folder / "workspace"),
                cpus=cpus,
                gpus=share.gpus,
            ),
            cpus=cpus,
            cpuset=share.cpuset,
            memory=desired.memory,
            pids=desired.pids,
            gpus=share.gpus,
            network=desired.network,
        )

    def held_task(self, desired: Desired) -> Task:
        """Enough for what is there already, whatever has become of its devices."""
        return self.bare_task(key_of(desired), desired.network)

    def bare_task(self, key: str, network: Network | None = None) -> Task:
        """Enough to remove something whose record was lost."""
        return Task(
            key=key,
            folder=self.workspaces.folder(key),
            output=self.workspaces.output(key),
            command=(),
            environment={},
            cpus=0.0,
            network=network,
        )

    def _mark(self, key: str, marks: Marks) -> None:
        record = self.journal.records.get(key)
        if record is not None:
            record.marks = list(marks)
            self.journal.note(key, record)


async def thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking call in a worker thread."""
    return await asyncio.to_thread(call, *args, **kwargs)
