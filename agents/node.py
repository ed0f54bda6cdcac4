"""What all replicas of a node share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ParamSpec, TypeVar

import psutil

from agents.checkpoints import Kept, Store, open_store
from agents.config import Config
from agents.devices.base import Devices
from agents.drivers.base import Driver, Task
from agents.environment import environment_of
from agents.facts import Board
from agents.fencing import Lease
from agents.journal import Journal
from agents.output import Outputs
from agents.prefetching import Prefetching
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
        self.measuring = asyncio.Lock()
        """Held while a replica is measured: one at a time, so that none disturbs another."""
        self.lease = Lease(config.state / "lease")
        self.kept = Kept(config.state / "kept", config.kept_bytes)
        self.prefetching = Prefetching(self)
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
            durable=self.config.durable,
        )

    def task(self, desired: Desired) -> Task:
        """What the driver needs to know of a replica. Raises ``DeviceError``."""
        key = key_of(desired)
        share = self.devices.share(desired.devices, desired.sharers)
        own = share.cpus or desired.cpus
        cpus = desired.allotted or own
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
                # As many threads whatever it is allotted for now: its result must not depend on it.
                cpus=own,
                gpus=share.gpus,
            ),
            cpus=cpus,
            cpuset=self.cpuset(desired, cpus),
            memory=desired.memory,
            pids=desired.pids,
            gpus=share.gpus,
            network=desired.network,
        )

    @property
    def cpus(self) -> float:
        """CPUs that the replicas of this node share."""
        return float(len(self.config.cores) or psutil.cpu_count() or 1)

    def share(self, desired: Desired) -> float:
        """CPUs that are a replica's: its devices', else what it asked for, else an even part."""
        own = self.devices.share(desired.devices, desired.sharers).cpus or desired.cpus
        return own or self.cpus * len(desired.devices) / max(1, len(self.devices))

    def cpuset(self, desired: Desired, cpus: float) -> str:
        """Cores to run on: its devices' own, or all where it may use more than those."""
        share = self.devices.share(desired.devices, desired.sharers)
        if share.cpuset and cpus > share.cpus + 1e-6:
            return self.devices.share((), 1).cpuset
        return share.cpuset

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
