"""A snapshot turned into rows: a large fleet in a real database, as its life would have left it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from django.db import models

from portal.models import (
    Checkpoint,
    Device,
    Job,
    Move,
    Node,
    PlacedReplica,
    Placement,
    Promise,
    Quota,
    Tenant,
    Tier,
    User,
)
from scheduler import planner

ABLE = {
    name: {"able": True, "reason": ""}
    for name in ("run", "pause", "checkpoint", "migrate", "network")
}
Row = TypeVar("Row", bound=models.Model)


def lay_out(snapshot: planner.Snapshot, *, hours: int = 6, seed: int = 0) -> None:
    """Write a fleet to an empty database; each job has ``hours`` entries in the ledger.

    A fifth of the running jobs has been moved twice, a third has a checkpoint.
    """
    _Writer(snapshot, hours, random.Random(seed)).write()


class _Writer:
    def __init__(self, snapshot: planner.Snapshot, hours: int, dice: random.Random) -> None:
        self.snapshot, self.hours, self.dice = snapshot, hours, dice
        self.owner, _ = User.objects.get_or_create(username="fleet")

    def write(self) -> None:
        tiers = keep(Tier(slug=t.id, title=t.id, rank=t.rank, promise=t.promise)
                     for t in self.snapshot.tiers)  # fmt: skip
        tenants = keep(Tenant(slug=t.id, title=t.id, weight=t.weight, usage=t.usage,
                              usage_at=moment(self.snapshot.now))
                       for t in self.snapshot.tenants)  # fmt: skip
        self.tiers = {row.slug: row for row in tiers}
        self.tenants = {row.slug: row for row in tenants}
        keep(
            Quota(tenant=self.tenants[t.id], device_kind=kind, reserved=quota.reserved,
                  borrow=quota.borrow)
            for t in self.snapshot.tenants for kind, quota in t.quotas.items()
        )  # fmt: skip
        self._nodes()
        self._jobs()

    def _nodes(self) -> None:
        heard = moment(self.snapshot.now)
        rows = keep(
            Node(name=node.id, token_digest=node.id, region=node.region, cluster=node.cluster,
                 rack=node.rack, cpus=node.cpus, memory=node.memory, abilities=ABLE,
                 heard_at=heard, connected=True)
            for node in self.snapshot.nodes
        )  # fmt: skip
        self.nodes = {row.name: row for row in rows}
        keep(
            Device(node=self.nodes[node.id], uid=device.id, index=index, kind=device.kind,
                   memory=device.memory)
            for node in self.snapshot.nodes for index, device in enumerate(node.devices)
        )  # fmt: skip

    def _jobs(self) -> None:
        rows = keep(self._job(job) for job in self.snapshot.jobs)
        pairs = list(zip(rows, self.snapshot.jobs, strict=True))
        seated = [(row, job) for row, job in pairs if job.seats]
        placements = keep(self._placement(row, job) for row, job in seated)
        keep(
            PlacedReplica(placement=placement, rank=seat.rank, node=self.nodes[seat.node],
                          devices=list(seat.devices), state="running")
            for placement, (_, job) in zip(placements, seated, strict=True) for seat in job.seats
        )  # fmt: skip
        keep(self._promises(pairs))
        keep(move for row, job in seated[::5] for move in self._moves(row, job))
        keep(
            Checkpoint(job=row, number=1, state="committed", bytes_raw=job.bytes,
                       bytes_stored=job.bytes // 3, began_at=moment(self.snapshot.now - 3600))
            for row, job in seated[::3]
        )  # fmt: skip

    def _job(self, job: planner.Job) -> Job:
        return Job(
            name=job.id, owner=self.owner, tenant=self.tenants[job.tenant],
            tier=self.tiers[job.tier], command=["train"], replicas=job.replicas,
            gpus_per_replica=job.gpus_per_replica, fewest_devices=job.fewest_devices,
            device_kind=job.device_kind, expected_s=job.expected_s,
            state="running" if job.seats else "waiting", epoch=int(bool(job.seats)),
            submitted_at=moment(job.submitted_at), waiting_since=moment(job.waiting_since),
            started_at=maybe(job.started_at), running_since=maybe(job.started_at),
            delivered=job.delivered, entitled=job.entitled, accounted_at=maybe(job.measured_at),
        )  # fmt: skip

    def _placement(self, row: Job, job: planner.Job) -> Placement:
        since = moment(job.started_at or 0)
        return Placement(job=row, epoch=1, state="active", want="running", want_since=since,
                         hold=False, devices=job.devices, created_at=since,
                         running_at=since)  # fmt: skip

    def _promises(self, pairs: Sequence[tuple[Job, planner.Job]]) -> Iterator[Promise]:
        last = moment(self.snapshot.now).replace(minute=0, second=0, microsecond=0)
        for row, job in pairs:
            for back in range(self.hours):
                yield Promise(
                    job=row, hour=last - timedelta(hours=back), tenant_id=row.tenant_id,
                    tier_id=row.tier_id, delivered=job.delivered / self.hours,
                    entitled=job.entitled / self.hours, promise=self.tiers[job.tier].promise,
                )  # fmt: skip

    def _moves(self, row: Job, job: planner.Job) -> Iterator[Move]:
        names = [seat.node for seat in job.seats[:4]]
        for back in (2, 1):
            stopped = self.snapshot.now - back * 7000
            phases = {"dump": 2 + self.dice.random(), "store": 3.0, "fetch": 4 * self.dice.random(),
                      "restore": 2.0}  # fmt: skip
            yield Move(job=row, kind="migrate", reason="defragmented", from_nodes=names,
                       to_nodes=names[::-1], began_at=moment(stopped), stopped_at=stopped,
                       resumed_at=stopped + 12, phases=phases, bytes_raw=job.bytes,
                       bytes_stored=job.bytes // 3)  # fmt: skip


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def maybe(seconds: float | None) -> datetime | None:
    return None if seconds is None else moment(seconds)


def keep(rows: Iterable[Row]) -> list[Row]:
    """Write rows in batches."""
    made = list(rows)
    if made:
        type(made[0])._default_manager.bulk_create(made, batch_size=2000)
    return made


class Life:
    """Writes what happens in a fleet between two cycles, without its agents."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def change(self, count: int, now: datetime) -> None:
        """A third of ``count`` jobs ends, a third arrives, a third comes to run."""
        each = count // 3
        running = list(Job.objects.filter(state="running").values_list("id", flat=True))
        over = self.dice.sample(running, min(each, len(running)))
        placements = Placement.objects.filter(job__in=over)
        PlacedReplica.objects.filter(placement__in=placements).update(state="exited", exit_code=0)
        placements.update(state="ended", ended_at=now)
        Job.objects.filter(id__in=over).update(state="succeeded", ended_at=now, running_since=None)
        like = Job.objects.filter(state="waiting").order_by("-id")[:each]
        for job in like:
            job.pk, job.submitted_at, job.waiting_since, job.sentence = None, now, now, ""
        keep(like)
        starting = list(Job.objects.filter(state="starting").values_list("id", flat=True)[:each])
        PlacedReplica.objects.filter(placement__job__in=starting).update(state="running")
        Placement.objects.filter(job__in=starting).update(running_at=now)
        Job.objects.filter(id__in=starting).update(
            state="running", running_since=now, accounted_at=now, waiting_since=None
        )
