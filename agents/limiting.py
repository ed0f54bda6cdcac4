"""The acts on a replica's CPUs while it runs: give it what it is allotted, measure what it gains.

Both only change how fast it runs. What it was held to is in no journal: an agent that was restarted
gives every replica its CPUs anew, so that none stays slowed by a measurement that was cut short.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from typing import TYPE_CHECKING

import msgspec
import psutil

from agents.drivers.base import DriverError, Strain, Task
from agents.node import Node, thread
from agents.profiling import DisturbedError, UnsteadyError, measure
from agents.protocol import Desired, Profile
from agents.watch import until_ended

if TYPE_CHECKING:
    from agents.replica import Replica

log = logging.getLogger("tidepool.limiting")

LONGEST_WINDOWS = 40
"""A measurement that takes longer than so many windows is given up."""
MOST_DISTURBED = 3
"""How often a measurement that was broken off is begun again."""

Limits = tuple[float, float, tuple[str, ...], int]


def limits_of(desired: Desired) -> Limits:
    """All that decides how many CPUs a replica is held to."""
    return desired.allotted, desired.cpus, tuple(desired.devices), desired.sharers


def profiled(replica: Replica) -> bool:
    """Whether there is nothing to measure now: not asked, done, or the node's turn is taken."""
    desired, profile = replica.desired, replica.record.fact.profile
    if desired is None or desired.profile <= (profile.number if profile else 0):
        return True
    return desired.sharers > 1 or replica.node.measuring.locked()


async def limit(replica: Replica) -> None:
    """Hold it to the CPUs that it is allotted."""
    desired = replica.desired or replica.record.desired
    await thread(replica.node.driver.limit, replica.node.task(desired))
    replica.limits = limits_of(desired)


async def profile(replica: Replica) -> None:
    """Measure what it gains from CPUs; whatever happens, it gets those back that it had."""
    node, desired = replica.node, replica.desired
    assert desired is not None
    task = node.task(desired)
    async with node.measuring:
        bench = ReplicaBench(replica, task)
        window_s = node.config.profile_window_s
        try:
            async with asyncio.timeout(LONGEST_WINDOWS * window_s), bench:
                found = await measure(
                    bench,
                    number=desired.profile,
                    share=node.share(desired),
                    most=node.cpus,
                    window_s=window_s,
                    storage=node.config.storage_bandwidth,
                )
        except DisturbedError:
            replica.disturbed += 1
            if replica.disturbed < MOST_DISTURBED:
                return
            found = _given_up(desired, "It was stopped or moved each time it was to be measured.")
        except UnsteadyError as error:
            found = _given_up(desired, str(error))
        except DriverError as error:
            found = _given_up(desired, str(error))
        except TimeoutError:
            found = _given_up(desired, "The node was too busy to measure it in time.")
        finally:
            replica.limits = None
            with contextlib.suppress(DriverError):
                await limit(replica)
    found = msgspec.structs.replace(found, working=bench.working)
    log.info("%s: profile %d took %.1f s: %s", replica.key, found.number, found.seconds, found)
    replica.disturbed = 0
    await replica.mark(replica.record.stage, profile=found)


def _given_up(desired: Desired, why: str) -> Profile:
    return Profile(number=desired.profile, at=time.time(), error=why)


class ReplicaBench:
    """A replica on its node, for the time of one measurement."""

    def __init__(self, replica: Replica, task: Task) -> None:
        self._replica = replica
        self._node: Node = replica.node
        self._task = task
        self.working = 0
        """The most memory that it was seen to hold besides cached files, bytes."""

    async def __aenter__(self) -> None:
        """Begin to watch for its end and for another wish."""
        self._ended = asyncio.ensure_future(until_ended(self._node.driver, self._task))
        self._changed = asyncio.ensure_future(self._replica.another_wish())

    async def __aexit__(self, *_: object) -> None:
        for future in (self._ended, self._changed):
            future.cancel()
        await asyncio.gather(self._ended, self._changed, return_exceptions=True)

    async def give(self, cpus: float) -> None:
        """Hold it to so many CPUs, on more cores than its own only where it needs them."""
        cpuset = self._node.cpuset(self._replica.record.desired, cpus)
        task = dataclasses.replace(self._task, cpus=cpus, cpuset=cpuset)
        await thread(self._node.driver.limit, task)

    async def look(self) -> Strain:
        """Read its counters."""
        strain = await thread(self._node.driver.strain, self._task)
        self.working = max(self.working, strain.memory)
        return strain

    async def busy(self) -> float | None:
        """How busy its devices are now."""
        return await thread(self._node.devices.busy, self._replica.record.desired.devices)

    async def wait(self, seconds: float) -> None:
        """Let it run, unless it ends or something else is wanted."""
        done, _ = await asyncio.wait(
            {self._ended, self._changed}, timeout=seconds, return_when="FIRST_COMPLETED"
        )
        if done:
            raise DisturbedError

    async def spare(self) -> float:
        """CPUs of the node that were idle for a moment."""
        idle = 1.0 - await thread(psutil.cpu_percent, 0.2) / 100
        return max(0.0, idle * self._node.cpus)
