"""The fleet's own last days as a trace, and what its moves have cost, both from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from statistics import median
from typing import Any

from django.utils import timezone

from portal.choices import Remedy
from portal.drawings.figures import count
from portal.models import Job, Move
from scheduler import planner
from scheduler.live.reading import gains
from scheduler.planner.sensitivity import Matrix
from scheduler.simulator import Arrival, Costs, Trace
from scheduler.simulator.arrivals import GIGABYTE, in_order

USUAL_S = 3600.0
"""Work of a job that has not ended and names no duration, where no other job tells one."""
RECEIPTS = 500
"""So many of the newest receipts are learned from."""
FEWEST_RECEIPTS = 3
STOPPING = ("gate", "freeze", "device", "dump")
GOING_ON = ("launch", "prepare", "network", "restore", "resume")
CARRYING = ("store", "fetch")


def history(days: int) -> Trace:
    """The jobs that were submitted in the last days.

    What has ended needs what it worked; what has not, what it said it would, else what is usual.
    Jobs that never ran and were cancelled are left out.
    """
    rows = list(
        Job.objects.filter(submitted_at__gte=timezone.now() - timedelta(days=days))
        .select_related("tenant", "tier", "partition")
        .order_by("submitted_at", "id")
    )
    known = [row.worked_s for row in rows if row.ended and row.worked_s > 0]
    usual = median(known) if known else USUAL_S
    images = _images([row.id for row in rows])
    arrivals = [
        _arrival(row, usual, images.get(row.id))
        for row in rows
        if not row.ended or row.worked_s > 0
    ]
    return in_order(f"the last {count(days, 'day')}", arrivals, left_out=len(rows) - len(arrivals))


def _arrival(row: Job, usual: float, image: int | None) -> Arrival:
    longer = max(row.worked_s, row.expected_s or usual)
    return Arrival(
        id=str(row.id),
        submitted_at=row.submitted_at.timestamp(),
        duration_s=max(1.0, row.worked_s if row.ended else longer),
        gpus=row.devices,
        replicas=row.replicas,
        fewest_gpus=row.fewest_devices,
        tenant=row.tenant.slug,
        tier=row.tier.slug,
        device_kinds=(row.device_kind,) if row.device_kind else (),
        partition=row.partition.slug if row.partition else "",
        cpus=row.cpus_per_replica * row.replicas,
        memory=row.memory_per_replica * row.replicas,
        image=image,
        remedy=planner.Remedy(row.remedy),
        expected_s=row.expected_s,
        # Who asks for CPUs has them, whatever they are worth to it.
        model="" if row.cpus_per_replica else row.recipe,
    )


def measured_of(trace: Trace) -> dict[str, Matrix]:
    """What was measured of the recipes of its jobs, as their arrivals name them."""
    recipes = {arrival.model for arrival in trace.arrivals} - {""}
    found = gains(recipes) if recipes else {}
    return {recipe: list(by_kind.values())[-1] for recipe, by_kind in found.items()}


def _images(jobs: Sequence[int]) -> dict[int, int]:
    """Bytes of the newest checkpoint of each job that moved."""
    known = _receipts().filter(job__in=jobs, bytes_raw__gt=0).order_by("began_at", "id")
    return dict(known.values_list("job_id", "bytes_raw"))


@dataclass(frozen=True, slots=True)
class Learned:
    """What moves cost here."""

    costs: Costs
    moves: int
    """How many it was learned from; 0: too few, these are the defaults."""

    def told(self) -> dict[str, Any]:
        """As plain values, for a row."""
        return {**asdict(self.costs), "moves": self.moves}


def learned_costs() -> Learned:
    """The medians of the fleet's newest moves, the defaults where there were too few.

    Both storing and fetching count as reading and writing at a node's rate; so nothing is left for
    the links between nodes, which ``Links`` without a limit say.
    """
    receipts = list(
        _receipts()
        .filter(bytes_raw__gt=0, from_devices__gt=0)
        .order_by("-began_at")
        .values_list("phases", "bytes_raw", "from_devices", "from_nodes", "to_nodes")[:RECEIPTS]
    )
    if len(receipts) < FEWEST_RECEIPTS:
        return Learned(Costs(), 0)

    def usual(names: Sequence[str]) -> float:
        return float(median(sum(took.get(name, 0.0) for name in names) for took, *_ in receipts))

    carried = sum(
        bytes_ / max(1, len(nodes))
        for phases, bytes_, _, left, reached in receipts
        for phase, nodes in (("store", left), ("fetch", reached))
        if phases.get(phase)
    )
    seconds = sum(phases.get(name, 0.0) for phases, *_ in receipts for name in CARRYING)
    costs = Costs(
        checkpoint_s=round(usual(STOPPING), 3),
        restore_s=round(usual(GOING_ON), 3),
        store_gb_s=round(carried / seconds / GIGABYTE, 4) if seconds else Costs().store_gb_s,
        image_gb_per_gpu=round(
            median(bytes_ / devices for _, bytes_, devices, *_ in receipts) / GIGABYTE, 4
        ),
    )
    return Learned(costs, len(receipts))


def _receipts() -> Any:
    """Moves of jobs that were stored and went on."""
    done = Move.objects.filter(remedy=Remedy.TRANSPARENT, called_off="")
    return done.exclude(resumed_at=None)
