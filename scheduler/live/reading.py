"""Rows as plain tuples: the queries by which the live cluster is seen, for all jobs or for some.

No model instances are made here: at tens of thousands of rows they would cost more than the plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from functools import lru_cache
from json import loads
from statistics import median
from typing import Any, NamedTuple

from django.db.models import Field, Func, QuerySet, Sum, TextField
from django.db.models.functions import Cast

from agents.protocol import State, Want
from portal.actions.receipts import RECEIPTS, TRAVELLING, closed_moves
from portal.choices import ENDED_STATES, CheckpointState, JobState, PlacementState
from portal.gains import matrix_of
from portal.models import (
    Checkpoint,
    Job,
    Move,
    PlacedReplica,
    Placement,
    Profile,
    Promise,
)
from scheduler.live.naming import device_id
from scheduler.planner import Link, NodeId, Seat
from scheduler.planner.sensitivity import Matrix

JOURNEYS = 2000
"""Moves of the whole fleet that ways between nodes are learned from, the last ones."""
JOURNEYS_A_PAIR = 8
TELLING_BYTES, TELLING_S = 1 << 20, 0.02
"""A smaller or quicker transfer tells of its overhead, not of the way."""
OVER = (*ENDED_STATES, JobState.PAUSED)
GONE = (State.EXITED.value, State.ABSENT.value)

Keys = Collection[int] | None
"""Ids of the jobs to read; ``None`` for all."""


class Seconds(Func):
    """A moment as seconds since 1970: making datetimes of them would take most of the time."""

    output_field: Field[Any, Any] = Field()
    """A float already; telling Django so would have it converted once more."""

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "EXTRACT(EPOCH FROM %(expressions)s)::float8"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        whole = "CAST(strftime('%%%%s', substr(%(expressions)s, 1, 19)) AS INTEGER) * 1000000"
        rest = "CAST(substr(substr(%(expressions)s, 21) || '000000', 1, 6) AS INTEGER)"
        template = f"(({whole} + {rest}) / 1000000.0)"
        return self.as_sql(compiler, connection, template=template, **context)


class JobRow(NamedTuple):
    """What is read of a job; moments are seconds since 1970, lists are still JSON."""

    id: int
    tenant: int
    tier: int
    partition: int | None
    state: str
    remedy: str
    replicas: int
    gpus_per_replica: int
    fewest_devices: int | None
    device_kind: str
    device_memory: int
    cpus_per_replica: float
    memory_per_replica: int
    move_asked: bool
    asked_devices: int | None
    pause_asked: bool
    moves: int
    expected_s: float | None
    worked_s: float
    delivered: float
    entitled: float
    submitted_at: float
    waiting_since: float | None
    running_since: float | None
    last_moved_at: float | None
    accounted_at: float | None
    untouchable_until: float | None
    recipe: str
    wanted_nodes: str
    avoid_nodes: str


PLAIN = (
    "id", "tenant_id", "tier_id", "partition_id", "state", "remedy", "replicas", "gpus_per_replica",
    "fewest_devices", "device_kind", "device_memory", "cpus_per_replica", "memory_per_replica",
    "move_asked", "asked_devices", "pause_asked", "moves", "expected_s", "worked_s", "delivered",
    "entitled",
)  # fmt: skip
MOMENTS = (
    "submitted_at", "waiting_since", "running_since", "last_moved_at", "accounted_at",
    "untouchable_until",
)  # fmt: skip
LISTS = ("wanted_nodes", "avoid_nodes")


def jobs(keys: Keys, seated: Iterable[int]) -> list[JobRow]:
    """Jobs that are neither over nor paused, and those in ``seated``; the oldest first."""
    columns: list[str | Func] = [*PLAIN, *map(Seconds, MOMENTS), "recipe"]
    columns += [Cast(name, TextField()) for name in LISTS]

    def read(rows: QuerySet[Job]) -> list[JobRow]:
        ordered = rows.order_by("submitted_at", "id").values_list(*columns)
        return list(map(JobRow._make, ordered))

    if keys is not None:
        return read(Job.objects.filter(id__in=keys))
    live = read(Job.objects.exclude(state__in=OVER))
    others = set(seated).difference([row.id for row in live])
    return live + read(Job.objects.filter(id__in=others)) if others else live


class Stay(NamedTuple):
    """A placement that is not ended, with its seats."""

    state: str
    want: str
    seats: tuple[Seat, ...]
    free: bool
    """Whether none of its replicas computes any more."""
    running: bool
    """Whether all of its replicas compute."""

    @property
    def holding(self) -> bool:
        return self.state != PlacementState.PARKED and not self.free

    @property
    def undisturbed(self) -> bool:
        return self.running and self.want == Want.RUNNING


def stays(keys: Keys, names: dict[int, NodeId]) -> dict[int, list[Stay]]:
    """The placements of each job that are not ended, the present one before the held one.

    ``names`` are those of the nodes by id.
    """
    placements = Placement.objects.exclude(state=PlacementState.ENDED)
    replicas = PlacedReplica.objects.exclude(placement__state=PlacementState.ENDED)
    if keys is not None:
        placements = placements.filter(job__in=keys)
        replicas = replicas.filter(placement__job__in=keys)
    seats: dict[int, list[Seat]] = defaultdict(list)
    states: dict[int, set[str]] = defaultdict(set)
    rows = replicas.order_by("placement_id", "rank").values_list(
        "placement_id", "rank", "node_id", "state", Cast("devices", TextField())
    )
    for placement, rank, node, state, devices in rows:
        name = names[node]
        ids = tuple([device_id(name, uid) for uid in words(devices)])
        seats[placement].append(Seat(rank=rank, node=name, devices=ids))
        states[placement].add(state)
    found: dict[int, list[Stay]] = defaultdict(list)
    ordered = placements.order_by("epoch").values_list("id", "job_id", "state", "want")
    for id, job, state, want in ordered:
        seen = states[id]
        free, running = seen.issubset(GONE), seen.issubset((State.RUNNING.value,))
        found[job].append(Stay(state, want, tuple(seats[id]), free, running))
    return found


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """A JSON list of words; the same lists come again and again."""
    return tuple(loads(text))


@lru_cache(maxsize=4096)
def node_names(text: str) -> frozenset[NodeId]:
    """A JSON list of nodes."""
    return frozenset(map(NodeId, loads(text)))


def avoided(text: str, now: float) -> tuple[frozenset[NodeId], float | None]:
    """Nodes that a job keeps away from at the moment, and when that will change."""
    until = {NodeId(name): end for name, end in loads(text).items() if end > now}
    return frozenset(until), min(until.values(), default=None)


def placed_jobs(placements: Collection[int]) -> set[int]:
    """The jobs of some placements, as far as they are still there."""
    rows = Placement.objects.filter(id__in=placements)
    return set(rows.order_by().values_list("job_id", flat=True))


def images(keys: Keys) -> dict[int, int]:
    """Bytes of the newest checkpoint of each job that has one to go on from."""
    rows = Checkpoint.objects.filter(state=CheckpointState.COMMITTED, collected=False)
    if keys is not None:
        rows = rows.filter(job__in=keys)
    else:
        rows = rows.exclude(job__state__in=ENDED_STATES)
    return dict(rows.order_by("number").values_list("job_id", "bytes_raw"))


def receipts(keys: Keys) -> dict[int, list[dict[str, float]]]:
    """Seconds a phase of each job's last moves, the last first."""
    rows = closed_moves()
    if keys is not None:
        rows = rows.filter(job__in=keys)
    else:
        rows = rows.exclude(job__state__in=ENDED_STATES)
    found: dict[int, list[dict[str, float]]] = defaultdict(list)
    ordered = rows.order_by("job_id", "-began_at").values_list("job_id", "phases")
    for job, phases in ordered:
        if len(found[job]) < RECEIPTS:
            found[job].append(phases)
    return found


def links() -> tuple[Link, ...]:
    """How fast images came from node to node in the last moves of the fleet.

    Of each pair the median of its last moves: one that met a full cache or a busy disk does not
    count for much.
    """
    rows = closed_moves().filter(bytes_raw__gte=TELLING_BYTES).order_by("-began_at", "-id")
    columns = rows.values_list("from_nodes", "to_nodes", "phases", "bytes_raw")
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sources, targets, phases, bytes_ in columns[:JOURNEYS]:
        seconds = sum(phases.get(name, 0.0) for name in TRAVELLING)
        if seconds < TELLING_S or not sources or not targets:
            continue
        for index, target in enumerate(targets):
            found = rates[sources[index * len(sources) // len(targets)], target]
            if len(found) < JOURNEYS_A_PAIR:
                found.append(bytes_ / len(targets) / seconds)
    return tuple(
        Link(source=NodeId(one), target=NodeId(other), rate=median(found), samples=len(found))
        for (one, other), found in sorted(rates.items())
    )


Gains = dict[str, dict[str, Matrix]]
"""By recipe and kind of device, what was measured last."""


def gains(recipes: Collection[str] | None) -> Gains:
    """What jobs of some recipes gain from CPUs, or of all recipes that run."""
    if recipes is None:
        running = Job.objects.filter(state=JobState.RUNNING).exclude(recipe="")
        profiles = Profile.objects.filter(error="", recipe__in=running.order_by().values("recipe"))
    else:
        profiles = Profile.objects.filter(error="", recipe__in=recipes)
    found: Gains = defaultdict(dict)
    for profile in profiles.order_by("at", "id"):
        if (matrix := matrix_of(profile)) is not None:
            found[profile.recipe][profile.device_kind] = matrix
    return found


def alike(profiled: Collection[int]) -> tuple[set[str], set[int]]:
    """The recipes of these jobs, and all that run by them."""
    jobs = Job.objects.exclude(recipe="").order_by()
    recipes = set(jobs.filter(id__in=profiled).values_list("recipe", flat=True))
    running = jobs.filter(state=JobState.RUNNING, recipe__in=recipes)
    return recipes, set(running.values_list("id", flat=True)) if recipes else set()


def seated_on(nodes: Collection[int]) -> set[int]:
    """The jobs with a place on these nodes."""
    seats = PlacedReplica.objects.filter(node__in=nodes).order_by()
    seats = seats.exclude(placement__state=PlacementState.ENDED)
    return set(seats.values_list("placement__job_id", flat=True))


def beyond(start: datetime, keys: Keys) -> dict[int, tuple[float, float]]:
    """Device-seconds delivered and entitled before ``start``, of live jobs older than that."""
    rows = Promise.objects.filter(hour__lt=start, job__submitted_at__lt=start)
    rows = rows.exclude(job__state__in=ENDED_STATES)
    if keys is not None:
        rows = rows.filter(job__in=keys)
    sums = rows.order_by().values_list("job_id").annotate(Sum("delivered"), Sum("entitled"))
    return {job: (delivered, entitled) for job, delivered, entitled in sums}


def background_moves(since: datetime) -> list[float]:
    """Moments of moves that nobody asked for and nobody gained by, or that made a gap."""
    rows = Move.objects.filter(reason__in=("defragmented", "gap"), began_at__gte=since)
    return [at for (at,) in rows.order_by("began_at", "id").values_list(Seconds("began_at"))]
