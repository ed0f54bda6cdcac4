"""Rows into the snapshot: what is told, and in how many queries."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.actions.steering import pause_job
from portal.models import Move, Partition
from scheduler import planner
from scheduler.live.observing import observe
from tests.live.puppets import Town

QUERIES = 21


def test_a_fixed_number_of_queries_whatever_the_fleet(town: Town) -> None:
    counts = []
    for number in range(3):
        for name in range(4):
            town.node(f"n{number}-{name}", 2)
        for _ in range(5):
            town.submit()
        town.rest()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            observe(timezone.now())
        counts.append(len(queries))
    assert counts[1] == counts[2] <= QUERIES, counts


def test_phases_and_seats(town: Town) -> None:
    town.node("n1", 1)
    running, waiting = town.submit(), town.submit()
    town.rest()
    snapshot = observe(town.now)
    jobs = {job.id: job for job in snapshot.jobs}
    assert jobs[planner.JobId(str(running.id))].phase == planner.Phase.RUNNING
    (seat,) = jobs[planner.JobId(str(running.id))].seats
    assert (seat.node, seat.devices) == ("n1", ("n1/d0",))
    assert jobs[planner.JobId(str(waiting.id))].phase == planner.Phase.WAITING
    town.puppets["n1"].obeys = False
    pause_job(town.user, running)
    (leaving, _) = observe(town.now).jobs
    assert leaving.phase == planner.Phase.MOVING
    assert leaving.seats == (seat,), "its devices are not free before it has left"


def test_nodes_tell_partitions_health_and_abilities(town: Town) -> None:
    puppet = town.node("n1", 2)
    partition = Partition.objects.create(slug="fast", title="Fast")
    partition.nodes.add(puppet.node)
    puppet.node.devices.filter(uid="d1").update(sick="ECC errors")
    (node,) = observe(town.now).nodes
    assert node.partitions == {"fast"}
    assert [device.sick for device in node.devices] == [False, True]
    assert node.can_restore and node.can_run_together


def test_ways_between_nodes_are_learned_from_receipts(town: Town) -> None:
    town.node("n1", 2)
    job = town.submit()
    town.rest()

    def moved(fetch_s: float, **fields: Any) -> None:
        facts = {"from_nodes": ["n1"], "to_nodes": ["n2"], "bytes_raw": 1 << 30} | fields
        Move.objects.create(
            job=job, kind="migrate", began_at=town.now, stopped_at=1.0, resumed_at=2.0,
            phases={"dump": 1.0, "fetch": fetch_s, "restore": 2.0}, **facts,
        )  # fmt: skip

    for fetch_s in (4.0, 5.0, 900.0):
        moved(fetch_s)
    moved(0.001)
    moved(4.0, called_off="It failed.")
    moved(8.0, to_nodes=["n3", "n4"])
    seen = observe(town.now)
    ways = {(link.source, link.target): (link.rate, link.samples) for link in seen.links}
    assert ways == {
        ("n1", "n2"): ((1 << 30) / 5.0, 3),
        ("n1", "n3"): ((1 << 29) / 8.0, 1),
        ("n1", "n4"): ((1 << 29) / 8.0, 1),
    }
    (told,) = seen.jobs
    assert told.cost is not None
    assert (told.cost.checkpoint_s, told.cost.restore_s, told.cost.samples) == (1.0, 2.0, 5)
