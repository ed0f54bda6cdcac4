"""Typed events for pages and agents, sent on commit, and the wake-up call to the scheduler."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Literal, TypedDict

import redis
from celery import current_app
from django.db import transaction
from django.db.models import F

from portal.broker import reach
from portal.choices import JobState
from portal.models import Job, Node, Simulation
from portal.posting import post
from portal.unit import after_commit, unit

log = logging.getLogger(__name__)

WANTED = "tidepool:cycle-wanted"


class JobEvent(TypedDict):
    """A job changed: its state or its sentence."""

    kind: Literal["job"]
    job: int
    state: str
    sentence: str


class NodeEvent(TypedDict):
    kind: Literal["node"]
    node: str


class PlacedEvent(TypedDict):
    """What runs on these nodes changed."""

    kind: Literal["placed"]
    nodes: list[str]


class UseEvent(TypedDict):
    """One second of a node's telemetry."""

    kind: Literal["use"]
    node: str
    at: float
    devices: dict[str, dict[str, float]]


class OutputEvent(TypedDict):
    kind: Literal["output"]
    job: int
    rank: int
    offset: int
    text: str


class MoveEvent(TypedDict):
    kind: Literal["move"]
    job: int


class CheckpointEvent(TypedDict):
    kind: Literal["checkpoint"]
    job: int


class SimulationEvent(TypedDict):
    """How far a simulation is."""

    kind: Literal["simulation"]
    simulation: int
    state: str
    share: float


Event = (
    JobEvent
    | NodeEvent
    | PlacedEvent
    | UseEvent
    | OutputEvent
    | MoveEvent
    | CheckpointEvent
    | SimulationEvent
)


def send(event: Event, *groups: str) -> None:
    """Send an event to the pages that joined these groups, now."""
    for group in groups:
        post(group, {"type": "event", "event": event})


def publish_on_commit(event: Event, *groups: str) -> None:
    """Send an event once what it tells of is committed."""
    transaction.on_commit(lambda: send(event, *groups))


def job_changed(job: Job) -> None:
    """Tell the pages that show this job."""
    event = JobEvent(kind="job", job=job.id, state=job.state, sentence=job.sentence)
    publish_on_commit(event, f"job.{job.id}", f"tenant.{job.tenant.slug}", "admins")


def simulation_changed(simulation: Simulation) -> None:
    """Tell the pages that show this simulation."""
    event = SimulationEvent(
        kind="simulation",
        simulation=simulation.id,
        state=simulation.state,
        share=simulation.share,
    )
    publish_on_commit(event, f"simulation.{simulation.id}")


def node_changed(node: Node) -> None:
    publish_on_commit(NodeEvent(kind="node", node=node.name), "fleet")


def renew(nodes: Iterable[int]) -> None:
    """Count a change of these nodes' desired state, and have it sent on commit."""
    if ids := set(nodes):
        with unit() as opened:
            opened.heap(Renewals).nodes |= ids


class Renewals:
    """Nodes whose desired state changed; one message for all the changes of a unit."""

    def __init__(self) -> None:
        self.nodes: set[int] = set()

    def write(self) -> None:
        # In the order of their ids, so that no two units wait for each other.
        rows = Node.objects.select_for_update().filter(id__in=self.nodes).order_by("id")
        ids = list(rows.values_list("id", flat=True))
        Node.objects.filter(id__in=ids).update(desired_number=F("desired_number") + 1)

        def tell() -> None:
            for id in ids:
                post(f"node.{id}", {"type": "renew"})

        transaction.on_commit(tell)


def placed(names: Iterable[str]) -> None:
    """Tell the fleet's pages that what runs on these nodes changed."""
    if nodes := set(names):
        with unit() as opened:
            opened.heap(Placed).nodes |= nodes


class Placed:
    """Names of nodes on which something else runs now; one event for a unit."""

    def __init__(self) -> None:
        self.nodes: set[str] = set()

    def write(self) -> None:
        publish_on_commit(PlacedEvent(kind="placed", nodes=sorted(self.nodes)), "fleet")


def wake() -> None:
    """Have a cycle run soon after commit; many calls before it begins make one cycle."""
    after_commit(_wake)


def wake_if_awaited() -> None:
    """Have a cycle run soon after commit for the jobs that wait; if none does, the tick is enough.

    For what gives devices or quota back: a job that only goes elsewhere costs no cycle meanwhile.
    """
    after_commit(_wake_if_awaited)


def _wake_if_awaited() -> None:
    if Job.objects.filter(state=JobState.WAITING).exists():
        _wake()


def _wake() -> None:
    _want(WANTED, "scheduler.tasks.cycle")


def wake_in(cluster: str) -> None:
    """Have a cluster's planner place soon what was sent to it."""
    _want(f"{WANTED}:{cluster}", "scheduler.tasks.cycle_in", cluster)


def _want(mark: str, task: str, *args: str) -> None:
    try:
        with reach() as broker:
            if broker.set(mark, "1", nx=True, ex=5):
                current_app.send_task(task, args=args, queue="cycle", ignore_result=True)
    except (redis.RedisError, OSError) as error:
        # The next tick plans anyway; a submission must not fail because the broker is away.
        log.warning("the broker is away, the next tick will plan: %s", error)
