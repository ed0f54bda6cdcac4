"""A sample fleet of any size, and jobs by the ten thousand: rows to measure pages with."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice

from agents.protocol import State, Want
from portal.choices import ENDED_STATES, JobState, PlacementState
from portal.models import Device, Job, Node, PlacedReplica, Placement
from portal.samples.fleet import ABLE, DEVICES, GIB, Sample

SIZES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (8, 8), (32, 8))
"""Replicas and devices a replica."""
WEIGHTS = (40, 20, 14, 14, 8, 3, 1)
RACK, CLUSTER = 8, 640
"""Nodes a rack and a cluster."""
FILLED = 0.92
BATCH = 2000
Seat = tuple[Node, list[str]]


def lay_crowd(sample: Sample, now: datetime, nodes: int, ended: int, seed: int = 7) -> int:
    """Add nodes of eight devices, jobs that fill most of them, and ended jobs; answer how many."""
    die = random.Random(seed)
    seats = free_seats(lay_nodes(nodes, now), die)
    running = 0
    room = int(nodes * DEVICES * FILLED)
    while room > 0:
        replicas, each = die.choices(SIZES, WEIGHTS)[0]
        gang = list(islice(seats[each], replicas))
        if len(gang) == replicas:
            lay_running(sample, gang, now, die)
            running += 1
        room -= replicas * each
    lay_ended(sample, ended, now, die)
    return running


def lay_nodes(count: int, now: datetime) -> list[Node]:
    sketches = (sketch_node(number, now) for number in range(count))
    nodes = Node.objects.bulk_create(sketches, batch_size=BATCH)
    devices = (
        Device(node=node, uid=f"GPU-{node.name}-{place}", index=place, kind="H100", memory=80 * GIB)
        for node in nodes
        for place in range(DEVICES)
    )
    Device.objects.bulk_create(devices, batch_size=BATCH)
    return nodes


def sketch_node(number: int, now: datetime) -> Node:
    cluster = number // CLUSTER
    return Node(
        name=f"crowd-{number:05}",
        token_digest=f"crowd-{number:05}",
        region=("us-east", "eu-west")[cluster % 2],
        cluster=f"h100-{'bcdefghijklmnopqrstuvwxyz'[cluster % 25]}",
        rack=f"rack-{number % CLUSTER // RACK:03}",
        draining=number % 97 == 5,
        lost_at=now if number % 211 == 7 else None,
        agent="0.1.0",
        driver="container",
        abilities={"run": ABLE, "checkpoint": ABLE, "migrate": ABLE},
        cpus=96,
        memory=1024 * GIB,
        heard_at=now,
        connected=True,
    )


def free_seats(nodes: list[Node], die: random.Random) -> dict[int, Iterator[Seat]]:
    """For each size of a replica, in devices, seats on nodes that only such replicas share."""
    pools: dict[int, list[Node]] = {1: [], 2: [], 4: [], 8: []}
    for node in nodes:
        pools[die.choices((1, 2, 4, 8), (5, 5, 8, 82))[0]].append(node)
    return {each: seats_of(pool, each) for each, pool in pools.items()}


def seats_of(nodes: Iterable[Node], each: int) -> Iterator[Seat]:
    for node in nodes:
        for first in range(0, DEVICES, each):
            yield node, [f"GPU-{node.name}-{place}" for place in range(first, first + each)]


def sketch_job(sample: Sample, die: random.Random, submitted: datetime, state: JobState) -> Job:
    owner = die.choice(sorted(sample.people))
    owner = "ana" if owner == "admin" else owner
    tenant = {"mira": "vision", "ana": "vision", "ben": "language", "lea": "language",
              "noor": "speech", "tom": "search", "kai": "robotics"}[owner]  # fmt: skip
    return Job(
        name=f"run-{die.randrange(16**6):06x}",
        tenant=sample.tenants[tenant],
        owner=sample.people[owner],
        tier=sample.tiers[die.choice(("premium", "standard", "basic"))],
        command=["python", "train.py"],
        state=state,
        submitted_at=submitted,
        started_at=submitted + timedelta(seconds=30),
    )


def lay_running(sample: Sample, gang: list[Seat], now: datetime, die: random.Random) -> None:
    begun = now - timedelta(minutes=die.uniform(1, 3000))
    job = sketch_job(sample, die, begun, JobState.RUNNING)
    job.replicas, job.gpus_per_replica = len(gang), len(gang[0][1])
    job.running_since = job.started_at
    job.save()
    placement = Placement.objects.create(
        job=job, epoch=1, state=PlacementState.ACTIVE, want=Want.RUNNING, want_since=begun,
        devices=job.devices, created_at=begun, running_at=job.started_at,
    )  # fmt: skip
    PlacedReplica.objects.bulk_create(
        PlacedReplica(placement=placement, rank=rank, node=node, devices=uids, state=State.RUNNING)
        for rank, (node, uids) in enumerate(gang)
    )


def lay_ended(sample: Sample, count: int, now: datetime, die: random.Random) -> None:
    for begins in range(0, count, BATCH):
        some = range(begins, min(count, begins + BATCH))
        Job.objects.bulk_create(sketch_ended(sample, now, die) for _ in some)


def sketch_ended(sample: Sample, now: datetime, die: random.Random) -> Job:
    begun = now - timedelta(minutes=die.uniform(100, 90 * 1440))
    job = sketch_job(sample, die, begun, die.choice(ENDED_STATES))
    job.replicas, job.gpus_per_replica = die.choices(SIZES, WEIGHTS)[0]
    job.ended_at = begun + timedelta(minutes=die.uniform(1, 90))
    return job
