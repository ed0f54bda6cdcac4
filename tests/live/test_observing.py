"""Rows into the snapshot: what is told, and in how many queries."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.actions.steering import pause_job
from portal.models import Partition
from scheduler import planner
from scheduler.live.observing import observe
from tests.live.puppets import Town

QUERIES = 14


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
