"""What the node and its replicas use, each second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import psutil

from agents.devices.base import Holder
from agents.drivers.base import Task
from agents.node import Node, thread
from agents.protocol import ReplicaUse, Telemetry
from agents.record import Record

EVERY_S = 1.0


class Meter:
    """Turns counters into rates: it remembers the last sample."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._seen: dict[str, tuple[float, float]] = {}

    def sample(self, records: Sequence[Record]) -> Telemetry:
        """Measure now; blocking. ``records`` are those of the replicas that hold devices."""
        at = time.monotonic()
        holders, replicas, seen = [], [], {}
        for record in records:
            task: Task = self.node.bare_task(record.key)
            use = self.node.driver.use(task)
            devices = tuple(record.desired.devices)
            holders.append(Holder(key=record.key, devices=devices, use=use))
            then, used = self._seen.get(record.key, (at, use.cpu_s))
            cpus = max(0.0, use.cpu_s - used) / (at - then) if at > then else 0.0
            seen[record.key] = (at, use.cpu_s)
            replicas.append(
                ReplicaUse(
                    job=record.desired.job,
                    rank=record.desired.rank,
                    cpus=round(cpus, 3),
                    memory=use.memory,
                )
            )
        self._seen = seen
        return Telemetry(
            at=time.time(),
            devices=self.node.devices.sample(holders, at),
            replicas=replicas,
            cpus=round(psutil.cpu_percent() / 100 * (psutil.cpu_count() or 1), 2),
            memory=psutil.virtual_memory().used,
        )


async def tell_telemetry(
    meter: Meter,
    records: Callable[[], Sequence[Record]],
    send: Callable[[Telemetry], Awaitable[None]],
) -> None:
    """Send a sample each second, until cancelled."""
    while True:
        await send(await thread(meter.sample, records()))
        await asyncio.sleep(EVERY_S)
