"""Looking again reads only what changed, and sees what a first look would see."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from portal import changes
from portal.actions.steering import cancel_job, pause_job, resize_job, resume_job
from portal.models import (
    Change,
    Checkpoint,
    Job,
    Move,
    Node,
    Partition,
    PlacedReplica,
    Promise,
    Tenant,
)
from portal.refusals import Refused
from scheduler import planner
from scheduler.live.cluster import LiveCluster
from scheduler.live.observing import Watch, observe
from scheduler.live.reconciling import reconcile
from scheduler.planner import PRESETS, Memory, Snapshot, plan
from tests.live.puppets import Town


def told(snapshot: Snapshot) -> Snapshot:
    """A snapshot with its jobs in the order of their ids: a look may list them in any."""
    return replace(snapshot, jobs=tuple(sorted(snapshot.jobs, key=lambda job: int(job.id))))


def agree(town: Town, watch: Watch) -> Snapshot:
    now = town.now
    seen = watch.observe(now)
    assert told(seen) == told(observe(now))
    return seen


def test_what_is_unchanged_is_the_same_object(town: Town) -> None:
    town.node("n1", 2)
    first, second = town.submit(), town.submit()
    town.rest()
    watch = Watch()
    before = {job.id: job for job in watch.observe(town.now).jobs}
    Job.objects.filter(pk=first.pk).update(expected_s=90.0)
    Job.objects.filter(pk=second.pk).update(sentence="nothing that the planner looks at")
    after = agree(town, watch)
    jobs = {job.id: job for job in after.jobs}
    assert jobs[planner.JobId(str(second.pk))] is before[planner.JobId(str(second.pk))]
    assert jobs[planner.JobId(str(first.pk))].expected_s == 90.0
    assert watch.observe(town.now).nodes is after.nodes


def test_a_look_at_nothing_new_reads_neither_jobs_nor_nodes(town: Town) -> None:
    town.node("n1", 2)
    town.submit()
    town.rest()
    watch = Watch()
    watch.observe(town.now)
    with CaptureQueriesContext(connection) as queries:
        watch.observe(town.now)
    read = " ".join(query["sql"] for query in queries)
    assert 'FROM "portal_job"' not in read and 'FROM "portal_node"' not in read
    assert len(queries) <= 10


WRITES: list[Callable[[Town], Any]] = [
    lambda town: Move.objects.create(
        job=Job.objects.first(),
        kind="migrate",
        began_at=town.now,
        resumed_at=9.0,
        from_nodes=["n1"],
        to_nodes=["n2"],
        bytes_raw=1 << 30,
        phases={"fetch": 3.0},
    ),
    lambda town: Job.objects.update(untouchable_until=town.now + timedelta(seconds=5)),
    lambda town: Job.objects.all().update(avoid_nodes={"n2": town.now.timestamp() + 3}),
    lambda town: PlacedReplica.objects.all().update(state="ready"),
    lambda town: Node.objects.filter(name="n1").update(cordoned=True),
    lambda town: Node.objects.get(name="n1").devices.filter(uid="d1").update(sick="hot"),
    lambda town: Node.objects.get(name="n1").devices.filter(uid="d1").delete(),
    lambda town: town.node("n3", 1),
    lambda town: Node.objects.filter(name="n3").update(name="n9"),
    lambda town: Partition.objects.create(slug="p", title="P").nodes.set(Node.objects.all()),
    lambda town: Tenant.objects.filter(slug="vision").update(slug="sight"),
    lambda town: Checkpoint.objects.create(
        job=Job.objects.first(), number=9, state="committed", began_at=town.now, bytes_raw=77
    ),
    lambda town: Node.objects.get(name="n2").delete(),
    lambda town: Job.objects.order_by("id").first().delete(),  # type: ignore[union-attr]
]


def test_every_kind_of_write_is_noticed(town: Town) -> None:
    town.node("n1", 2)
    town.node("n2", 1)
    for _ in range(3):
        town.submit()
    town.rest()
    watch = Watch()
    for number, write in enumerate(WRITES):
        before = told(watch.observe(town.now))
        write(town)
        after = told(agree(town, watch))
        assert after != replace(before, now=after.now, tenants=after.tenants), number
        town.pass_time(10)
        agree(town, watch)


def test_columns_that_are_read_are_watched() -> None:
    from scheduler.live import reading

    jobs = next(watched for watched in changes.WATCHED if watched.table == "portal_job")
    read = {*reading.PLAIN, *reading.MOMENTS, *reading.LISTS} - {"id"}
    assert read <= set(jobs.columns)


def test_promises_move_out_of_their_window_by_the_hour(town: Town) -> None:
    job = town.submit()
    old = town.now.replace(minute=0, second=0, microsecond=0) - timedelta(days=6, hours=22)
    Job.objects.filter(pk=job.pk).update(submitted_at=old, delivered=30.0, entitled=300.0)
    for hour in range(3):
        Promise.objects.create(
            job=job, hour=old + timedelta(hours=hour), tenant=job.tenant, tier=job.tier,
            delivered=10.0, entitled=100.0,
        )  # fmt: skip
    watch = Watch()
    seen = []
    for _ in range(5):
        (one,) = agree(town, watch).jobs
        seen.append(one.entitled)
        town.pass_time(3600)
    assert seen[0] == 300.0 and seen[-1] < 100.0 and seen == sorted(seen, reverse=True)


def test_without_its_triggers_everything_is_read(town: Town) -> None:
    town.node("n1", 2)
    job = town.submit()
    watch = Watch()
    watch.observe(town.now)
    try:
        changes.remove()
        Job.objects.filter(pk=job.pk).update(expected_s=5.0)
        agree(town, watch)
        Job.objects.filter(pk=job.pk).update(expected_s=6.0)
    finally:
        changes.install()
    (one,) = agree(town, watch).jobs
    assert one.expected_s == 6.0
    Job.objects.filter(pk=job.pk).update(expected_s=7.0)
    changes.forget_old(kept=0)
    assert changes.mark() is not None and Change.objects.count() == 1
    (one,) = agree(town, watch).jobs
    assert one.expected_s == 7.0, "the log was cut behind the watch's back"
    call_command("migrate", verbosity=0)
    assert changes.mark() is not None


@pytest.mark.django_db
def test_what_may_be_undone_is_not_remembered(town: Town) -> None:
    watch = Watch()
    town.node("n1", 2)
    job = town.submit()
    watch.observe(town.now)
    with transaction.atomic():
        Job.objects.filter(pk=job.pk).update(expected_s=5.0)
        (one,) = watch.observe(town.now).jobs
        assert one.expected_s == 5.0
        transaction.set_rollback(True)
    agree(town, watch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_life_with_and_without_memory(town: Town, seed: int) -> None:
    """Two workers take turns with what they remember; each plan is as one without memory."""
    dice = random.Random(seed)
    for number in range(3):
        town.node(f"n{number}", dice.choice((1, 2, 4)))
    workers = [(Watch(), Memory()) for _ in range(2)]
    jobs: list[Job] = []
    for _ in range(15):
        happen(town, dice, jobs)
        reconcile(town.now)
        for puppet in town.puppets.values():
            puppet.step()
        watch, memory = dice.choice(workers)
        policy = PRESETS[dice.choice(("eager", "eager", "default"))]
        now = town.now
        seen = watch.observe(now)
        fresh = observe(now)
        assert told(seen) == told(fresh)
        decided = plan(seen, policy, memory)
        assert sorted(map(repr, decided)) == sorted(map(repr, plan(told(fresh), policy)))
        LiveCluster(now).enact(decided)
        town.pass_time(dice.choice((1, 40, 4000)))


def happen(town: Town, dice: random.Random, jobs: list[Job]) -> None:
    """One thing that people or machines do."""
    match dice.randrange(9):
        case 0 | 1 | 2 | 3:
            replicas = dice.choice((1, 1, 2, 4))
            with suppress(Refused):
                jobs.append(
                    town.submit(
                        dice.choice(("basic", "standard", "premium")),
                        replicas=replicas,
                        fewest_devices=1 if dice.random() < 0.5 else None,
                    )
                )
        case 4:
            town.node(f"x{len(town.puppets)}", dice.choice((1, 2)))
        case 5:
            Node.objects.filter(name=dice.choice(sorted(town.puppets))).update(
                draining=dice.random() < 0.4
            )
        case 6 if jobs:
            for puppet in town.puppets.values():
                puppet.ends[dice.choice(jobs).pk] = dice.choice((0, 0, 1))
        case _ if jobs:
            act: Any = dice.choice((pause_job, resume_job, cancel_job, resized))
            with suppress(Refused):
                act(town.user, dice.choice(jobs))


def resized(user: Any, job: Job) -> None:
    resize_job(user, job, 1)
