"""One simulated job from its submission to its end: what it holds, how far it is, what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from scheduler.planner import DeviceId, Job, JobId, MoveCost, NodeId, Phase, Seat, TenantId, TierId
from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.fleets import Fleet, partition_of
from scheduler.simulator.physics import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one job. Times are seconds on the simulation's clock."""

    id: str
    tenant: str
    tier: str
    gpus: int
    submitted_at: float
    duration_s: float
    started_at: float | None
    finished_at: float | None
    """``None``: still there when the simulation ended."""
    delivered: float
    """Device-seconds in which it held devices and computed."""
    moving_s: float
    """Seconds in checkpoints, transfers and restores."""
    lost_s: float
    """Seconds of work done twice."""
    preemptions: int
    migrations: int
    resizes: int
    contention: float
    """How many asked for each device while it was there, on average, at least 1."""

    @property
    def completion_s(self) -> float:
        """Seconds from submission to end; raises ``ValueError`` for a job without an end."""
        if self.finished_at is None:
            raise ValueError(f"job {self.id} did not finish")
        return self.finished_at - self.submitted_at

    @property
    def wait_s(self) -> float:
        """Seconds it neither computed nor moved, beyond its work."""
        return max(0.0, self.completion_s - self.duration_s - self.moving_s - self.lost_s)

    @property
    def fraction(self) -> float:
        """GPU fraction: ideal run time on the devices asked for over the real one, 0 to 1."""
        return min(1.0, self.duration_s / self.completion_s) if self.completion_s else 1.0

    @property
    def unfairness(self) -> float:
        """Finish-time fairness: completion over that of an even share; above 1 is unfair."""
        even = self.duration_s * self.contention
        return self.completion_s / even if even else 1.0


class Life:
    """The changing side of a job; only the simulated cluster writes it."""

    __slots__ = (
        "arrival",
        "contention",
        "counted",
        "delivered",
        "devices",
        "finished_at",
        "job",
        "left",
        "lost_s",
        "migrations",
        "moved_at",
        "moving_s",
        "moving_since",
        "nearness",
        "pace",
        "paced_from",
        "phase",
        "preemptions",
        "resizes",
        "restored_work",
        "run_began",
        "seats",
        "since",
        "started_at",
        "turn",
        "worked",
    )

    def __init__(self, arrival: Arrival, job: Job) -> None:
        self.arrival = arrival
        self.job = job
        self.phase = Phase.WAITING
        self.seats: tuple[Seat, ...] = ()
        self.devices = 0
        """Distinct devices it holds."""
        self.pace = 0.0
        """Work a second."""
        self.paced_from = 1.0
        """Its pace when all devices are there, 1 unless CPUs or memory are re-split."""
        self.nearness = 1.0
        """The part of its pace that it keeps where it lies."""
        self.worked = 0.0
        self.since = job.submitted_at
        """When ``worked`` and ``delivered`` were last brought up to date."""
        self.delivered = 0.0
        self.counted = False
        """Whether its devices count as its tenant's use."""
        self.run_began = 0.0
        self.started_at: float | None = None
        self.finished_at: float | None = None
        self.moving_since = 0.0
        self.moved_at: float | None = None
        self.moving_s = 0.0
        self.lost_s = 0.0
        self.preemptions = 0
        self.migrations = 0
        self.resizes = 0
        self.restored_work = 0.0
        """Work that its last checkpoint holds."""
        self.left: tuple[NodeId, ...] = ()
        """The nodes its image was taken on."""
        self.contention = 0.0
        """The fleet's sum of contention when it came, then its own mean."""
        self.turn = 0
        """Counts its changes, so that an event that was overtaken is known."""

    def settle(self, now: float) -> None:
        """Bring work and deliveries up to now."""
        if self.phase is Phase.RUNNING:
            passed = now - self.since
            self.worked += passed * self.pace
            self.delivered += passed * self.devices
        self.since = now

    @property
    def ends_at(self) -> float:
        """When it will have done its work, if nothing happens to it."""
        return self.since + (self.arrival.duration_s - self.worked) / self.pace

    def outcome(self, start: float) -> Outcome:
        """What became of it, with times from ``start``."""
        arrival = self.arrival
        return Outcome(
            id=arrival.id,
            tenant=arrival.tenant,
            tier=str(self.job.tier),
            gpus=arrival.gpus,
            submitted_at=self.job.submitted_at - start,
            duration_s=arrival.duration_s,
            started_at=None if self.started_at is None else self.started_at - start,
            finished_at=None if self.finished_at is None else self.finished_at - start,
            delivered=self.delivered,
            moving_s=self.moving_s,
            lost_s=self.lost_s,
            preemptions=self.preemptions,
            migrations=self.migrations,
            resizes=self.resizes,
            contention=self.contention,
        )


def held(seats: tuple[Seat, ...]) -> set[DeviceId]:
    """The distinct devices that some seats name."""
    return {device for seat in seats for device in seat.devices}


class Intake:
    """Makes of an arrival what the planner first sees of it."""

    def __init__(self, fleet: Fleet, costs: Costs) -> None:
        self._largest = fleet.largest_node
        self._link = fleet.links.cluster
        self._costs = costs
        self._default_tier: TierId = min(fleet.tiers, key=lambda tier: (tier.rank, tier.id)).id
        self._moves: dict[tuple[int, int], MoveCost] = {}

    def job(self, number: int, arrival: Arrival) -> Job:
        """The job, waiting; its id sorts like its row in the trace."""
        replicas = arrival.replicas or split(arrival.gpus, self._largest, arrival.fewest_gpus)
        image = self._costs.image(arrival)
        at = arrival.submitted_at
        return Job(
            id=JobId(f"{number:07}"),
            tenant=TenantId(arrival.tenant),
            tier=TierId(arrival.tier) if arrival.tier else self._default_tier,
            phase=Phase.WAITING,
            submitted_at=at,
            waiting_since=at,
            replicas=replicas,
            gpus_per_replica=arrival.gpus // replicas,
            fewest_devices=arrival.fewest_gpus,
            device_kind=arrival.device_kinds[0] if len(arrival.device_kinds) == 1 else "",
            partition=partition_of(arrival.partition, arrival.device_kinds),
            cpus_per_replica=arrival.cpus / replicas,
            memory_per_replica=arrival.memory // replicas,
            remedy=arrival.remedy,
            expected_s=arrival.duration_s if arrival.expected_s is None else arrival.expected_s,
            measured_at=at,
            cost=self._move(image, -(-arrival.gpus // self._largest)),
            bytes=image,
            priority=arrival.priority,
        )

    def _move(self, image: int, nodes: int) -> MoveCost:
        known = self._moves.get((image, nodes))
        if known is None:
            known = self._costs.move(image, nodes, nodes, self._link)
            self._moves[image, nodes] = known
        return known


def altered(job: Job, changes: Mapping[str, object]) -> Job:
    """The job with some facts replaced: ``dataclasses.replace``, at a third of its price."""
    new = object.__new__(Job)
    for name, read, write in _FACTS:
        write(new, changes[name] if name in changes else read(job))
    return new


_FACTS = [
    (each.name, getattr(Job, each.name).__get__, getattr(Job, each.name).__set__)
    for each in fields(Job)
]


def split(gpus: int, largest_node: int, fewest: int | None) -> int:
    """Into how many replicas a job's devices are split.

    An elastic job gets one replica a device, so that they can share. Another gets the fewest equal
    replicas that each fit a node.
    """
    if fewest is not None and fewest < gpus:
        return gpus
    for replicas in range(-(-gpus // largest_node), gpus + 1):
        if gpus % replicas == 0:
            return replicas
    return gpus
