"""What the planner is shown: facts about the fleet at one moment, frozen.

Nothing here is derived. Shares, free devices, deficits and cooling are worked out inside ``plan``.
Times are seconds on the caller's clock, sizes are bytes, device counts are whole devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from scheduler.planner.sensitivity.matrix import Matrix

JobId = NewType("JobId", str)
NodeId = NewType("NodeId", str)
DeviceId = NewType("DeviceId", str)
TenantId = NewType("TenantId", str)
TierId = NewType("TierId", str)


class Remedy(StrEnum):
    """How a job can be taken off its devices, gentlest first."""

    TRANSPARENT = "transparent"
    """Checkpoint, and go on anywhere at the same step."""
    PAUSE = "pause"
    """Freeze in place: devices are given back, host memory stays on the node."""
    REQUEUE = "requeue"
    """Stop, and start again from the beginning."""


class Phase(StrEnum):
    """Where a job stands in the planner's eyes."""

    WAITING = "waiting"
    """Wants devices and has none."""
    RUNNING = "running"
    """Holds devices and computes."""
    MOVING = "moving"
    """Holds devices that it is leaving or coming to; not to be touched in this cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator of a node."""

    id: DeviceId
    kind: str
    memory: int = 0
    sick: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine with its place in the topology and what it can do."""

    id: NodeId
    devices: tuple[Device, ...]
    cpus: float = 0.0
    memory: int = 0
    rack: str = ""
    cluster: str = ""
    region: str = ""
    partitions: frozenset[str] = frozenset()
    cordoned: bool = False
    """Nothing new lands here; what runs stays."""
    draining: bool = False
    """Nothing new lands here and what runs is moved away."""
    lost: bool = False
    """Not heard of for longer than its lease."""
    can_restore: bool = True
    """Able to restore a checkpoint that another node took."""
    can_run_together: bool = True
    """Able to hold one replica of a job whose others live on other nodes (job networks)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where one replica sits: a node and the devices it holds there.

    Several replicas of one job may name the same devices: then they share them by turns.
    """

    rank: int
    node: NodeId
    devices: tuple[DeviceId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a tenant may use of one device kind, in devices. ``None`` means without limit."""

    reserved: int = 0
    borrow: int | None = 0
    """How many devices beyond ``reserved`` may be borrowed from what others leave idle."""
    lend: bool = True
    """Whether idle reserved devices may be borrowed by others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A team that shares the fleet; tenants form a tree by ``parent``."""

    id: TenantId
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    """By device kind; a kind that is not named has no quota and can only be borrowed by nobody.

    An empty mapping means unlimited use.
    """
    parent: TenantId | None = None
    weight: float = 1.0
    usage: float = 0.0
    """Device-seconds used, decayed with the half-life of the fleet's fair share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A service tier: a promised GPU fraction and a rank; the higher may push off the lower."""

    id: TierId
    rank: int
    promise: float = 0.0
    """GPU fraction promised, 0 (none) to 1."""
    preemptible: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCost:
    """Seconds to checkpoint, transfer and restore one job, as measured, and how sure that is."""

    checkpoint_s: float
    transfer_s: float
    restore_s: float
    samples: int = 0

    @property
    def total_s(self) -> float:
        return self.checkpoint_s + self.transfer_s + self.restore_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How fast images were seen to travel from one node to another."""

    source: NodeId
    target: NodeId
    rate: float
    """Bytes a second, above 0, counted as the memory was before compression."""
    samples: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A gang of ``replicas`` x ``gpus_per_replica`` devices, all or nothing."""

    id: JobId
    tenant: TenantId
    tier: TierId
    phase: Phase
    submitted_at: float
    replicas: int = 1
    gpus_per_replica: int = 1
    fewest_devices: int | None = None
    """The elastic lower bound in devices; ``None`` means rigid."""
    device_kind: str = ""
    """Empty: any kind, but one kind for all replicas."""
    device_memory: int = 0
    """Least memory a device must have, in bytes."""
    cpus_per_replica: float = 0.0
    memory_per_replica: int = 0
    partition: str = ""
    remedy: Remedy = Remedy.TRANSPARENT
    seats: tuple[Seat, ...] = ()
    """Where it runs (or is moving to); empty while waiting."""
    kept_on: tuple[Seat, ...] = ()
    """Where a job with remedy *pause* must come back to: its memory is there."""
    wanted_nodes: frozenset[NodeId] = frozenset()
    """A person's wish: move to one of these. Empty: no wish."""
    avoid_nodes: frozenset[NodeId] = frozenset()
    """A person's wish or bad experience: not there."""
    move_asked: bool = False
    """A person asked for a move (``wanted_nodes`` empty: anywhere else)."""
    asked_devices: int | None = None
    """A person asked for this many devices (resize by hand)."""
    has_image: bool = False
    """A checkpoint exists; starting means restoring it."""
    waiting_since: float = 0.0
    started_at: float | None = None
    """When the present run on these seats began."""
    last_moved_at: float | None = None
    moves: int = 0
    expected_s: float | None = None
    """Seconds of work the user expects in all."""
    worked_s: float = 0.0
    """Seconds of work done so far at full size."""
    at_stake_s: float = 0.0
    """Seconds of work that would be lost if it were pushed off (0 when transparent)."""
    delivered: float = 0.0
    """Device-seconds delivered within the promise's window."""
    entitled: float = 0.0
    """Device-seconds it was entitled to within the promise's window."""
    measured_at: float | None = None
    """When ``worked_s``, ``at_stake_s``, ``delivered`` and ``entitled`` were true; the planner
    carries them on from there. ``None``: at the snapshot's ``now``. A job that has not changed can
    so be shared between snapshots."""
    cost: MoveCost | None = None
    bytes: int = 0
    """Last known size of its image, for the default cost."""
    matrix: Matrix | None = None
    """What it gains from CPUs and memory for each device; ``None``: it was not measured."""
    priority: float = 0.0
    """A number that custom orderings may use; larger goes first."""

    @property
    def devices(self) -> int:
        """Devices at full size."""
        return self.replicas * self.gpus_per_replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole fleet as observed at ``now``."""

    now: float
    nodes: tuple[Node, ...]
    jobs: Sequence[Job]
    """A tuple, or a `Roster` where only a few jobs change between snapshots."""
    tenants: tuple[Tenant, ...]
    tiers: tuple[Tier, ...]
    links: tuple[Link, ...] = ()
    """What was learned of ways between nodes; the rest is assumed (`costs.py`)."""
    moved_at: tuple[float, ...] = ()
    """Moments of the background moves of the last hour, for the hourly budget."""
