"""What every driver is: a few blocking verbs, declared abilities, and a durable handle.

The agent calls verbs from worker threads, never two at once for the same replica. A verb that has
already been done does nothing when it is asked for again, so that an agent killed half-way can
repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agents.protocol import Ability, Network


class DriverError(Exception):
    """A verb failed. ``id`` is stable, ``str()`` is the sentence that says what to do."""

    def __init__(self, id: str, sentence: str) -> None:
        super().__init__(sentence)
        self.id = id


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One replica to be run: all that a driver needs, and where its files are."""

    key: str
    """Unique on the node and stable over the agent's restarts: ``j<job>-r<rank>-e<epoch>``."""
    folder: Path
    """The replica's own folder: ``workspace/`` is its working directory."""
    output: Path
    """File that the driver appends stdout and stderr to, as one stream."""
    command: tuple[str, ...]
    environment: Mapping[str, str]
    cpus: float
    cpuset: str = ""
    """Cores it may run on, e.g. ``0-1``; empty: any."""
    memory: int = 0
    pids: int = 1024
    gpus: tuple[str, ...] = ()
    """UUIDs of NVIDIA devices it may see."""
    network: Network | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a task is now."""

    state: str
    """``running``, ``frozen``, ``exited`` or ``gone``."""
    exit_code: int | None = None
    """128 + signal when a signal ended it."""
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """CPU seconds used so far and bytes of memory held now."""

    cpu_s: float = 0.0
    memory: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Strain:
    """Counters that tell whether a task wanted more than it was given."""

    at: float
    """Monotonic seconds."""
    cpu_s: float = 0.0
    periods: int = 0
    """Periods of the CPU quota in which it wanted to run."""
    held_back: int = 0
    """Those of them in which it was stopped at its quota."""
    waited_s: float | None = None
    """Seconds that its living threads were ready and did not run; ``None`` where it is hidden."""
    memory: int = 0
    """Bytes held besides cached files."""
    cached: int = 0
    """Bytes of cached files in use."""
    read: int | None = None
    """Bytes that its living processes have read, cached or not; ``None`` where that is hidden."""


class Driver(Protocol):
    """Runs tasks in one way."""

    name: str

    def probe(self) -> dict[str, Ability]:
        """Tell what it can do here, each with a reason if not: run, pause, checkpoint, ..."""

    def start(self, task: Task) -> None:
        """Start the command. Raises ``DriverError`` with ``command-not-found`` and the like."""

    def inspect(self, task: Task) -> Condition:
        """Tell what the task is now, also after the agent was restarted."""

    def use(self, task: Task) -> Use:
        """Tell what it uses now."""

    def strain(self, task: Task) -> Strain:
        """Read the counters of its quota; only where ``profile`` is among its abilities."""

    def limit(self, task: Task) -> None:
        """Hold a task that runs to ``task.cpus`` and ``task.cpuset`` from now on.

        Does nothing where there is no way to; ``DriverError`` ``gone`` when it has ended.
        """

    def pid(self, task: Task) -> int | None:
        """A process whose end is the task's, while it lives; ``None`` where there is none."""

    def freezer(self, task: Task) -> dict[str, str]:
        """How a guard freezes it alone: ``freezer``, a folder, or ``session``, an id."""

    def freeze(self, task: Task) -> None:
        """Stop it from running and close its network gate; memory stays."""

    def thaw(self, task: Task) -> None:
        """Let it run again, then open its gate."""

    def dump(self, task: Task, images: Path) -> None:
        """Write a frozen task's memory below ``images``; it stays frozen, also after an error."""

    def restore(self, task: Task, images: Path) -> None:
        """Make the task again from ``images``, frozen, gate closed; ``thaw`` sets it going."""

    def stop(self, task: Task, grace_s: float) -> None:
        """End it: SIGTERM, then SIGKILL after the grace."""

    def remove(self, task: Task) -> None:
        """Remove all that was made for it, running or not, but not ``folder`` and ``output``."""

    def leftovers(self) -> list[str]:
        """Keys of tasks of this agent that exist on the node, for recovery."""

    def close(self) -> None:
        """The agent ends: remove what tasks have shared, if none is left."""
