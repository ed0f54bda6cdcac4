"""A job that is to move computes on until its image is where it goes, and not for ever."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.protocol import Prefetch, State, Want
from portal.actions.desired import desired_state
from portal.actions.prefetching import PATIENCE
from portal.actions.steering import cancel_job, checkpoint_job, migrate_job, pause_job
from portal.choices import Then
from portal.models import Job, Placement
from tests.live.puppets import Puppet, Town


@pytest.fixture
def far(town: Town) -> Puppet:
    """The node that the job is to go to; it takes no hint yet."""
    town.node("n1", 1)
    puppet = town.node("n2", 1)
    puppet.fetches = False
    return puppet


@pytest.fixture
def job(town: Town, far: Puppet) -> Job:
    """A job on the other node with a checkpoint, asked to move."""
    far.node.cordoned = True
    far.node.save()
    job = town.submit()
    town.rest()
    checkpoint_job(town.user, job)
    town.rest()
    far.node.cordoned = False
    far.node.save(update_fields=["cordoned"])
    migrate_job(town.user, job, "n2")
    town.rest()
    return job


def present(job: Job) -> Placement:
    return job.placements.get(state="active")


def test_it_runs_on_until_its_image_is_there(town: Town, far: Puppet, job: Job) -> None:
    job.refresh_from_db()
    placement = present(job)
    assert (job.state, placement.want, placement.then) == ("running", Want.RUNNING, Then.MOVE)
    (hint,) = desired_state(far.node.id).prefetch
    assert (hint.job, hint.rank, hint.manifest) == (job.id, 0, f"m/{job.id}-0-1")
    far.fetches = True
    town.rest()
    assert town.where(job) == ["n2"]
    receipt = job.receipts.get()
    assert receipt.resumed_at
    assert receipt.left_at
    assert receipt.to_nodes == ["n2"]
    assert not receipt.called_off
    assert desired_state(far.node.id).prefetch == []


def test_it_does_not_wait_for_ever(town: Town, far: Puppet, job: Job) -> None:
    town.pass_time(PATIENCE.total_seconds() + 1)
    town.rest()
    assert town.where(job) == ["n2"]


def test_what_it_computes_meanwhile_counts(town: Town, job: Job) -> None:
    job.refresh_from_db()
    assert job.running_since is not None
    before = job.delivered
    town.pass_time(16)
    town.rest()
    job.refresh_from_db()
    assert job.delivered >= before + 15


def test_a_target_that_dies_while_it_fetches_leaves_the_job_where_it_is(
    town: Town, far: Puppet, job: Job
) -> None:
    far.node.refresh_from_db()
    far.node.heard_at = town.now
    far.node.connected = False
    far.node.cordoned = True
    far.node.save()
    job.placements.filter(state="held").delete()
    town.rest()
    job.refresh_from_db()
    assert (job.state, town.where(job)) == ("running", ["n1"])
    assert present(job).then == Then.STAY
    assert "gone" in job.receipts.get().called_off


def test_one_that_ends_meanwhile_has_succeeded(town: Town, far: Puppet, job: Job) -> None:
    town.puppets["n1"].ends[job.id] = 0
    town.rest()
    job.refresh_from_db()
    assert job.state == "succeeded"
    assert "ended" in job.receipts.get().called_off
    assert not Placement.objects.exclude(state="ended").exists()
    assert desired_state(far.node.id).prefetch == []


def test_it_can_be_cancelled_meanwhile(town: Town, job: Job) -> None:
    cancel_job(town.user, job)
    town.rest()
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert not Placement.objects.exclude(state="ended").exists()


def test_a_pause_asked_meanwhile_is_granted_after_the_move(
    town: Town, far: Puppet, job: Job
) -> None:
    pause_job(town.user, job)
    far.fetches = True
    town.rest()
    job.refresh_from_db()
    assert job.state == "paused"


def test_one_without_a_checkpoint_moves_at_once(town: Town, far: Puppet) -> None:
    job = town.submit()
    town.rest()
    there = "n2" if town.where(job) == ["n1"] else "n1"
    migrate_job(town.user, job, there)
    town.rest()
    assert town.where(job) == [there]
    assert job.checkpoints.count() == 1


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_large_one_without_a_checkpoint_is_cut_first(
    town: Town, monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    monkeypatch.setattr("scheduler.live.enacting.worthwhile", lambda _: True)
    for name in ("n1", "n2", "n3", "n4"):
        town.node(name, 1)
    job = town.submit(replicas=replicas)
    town.rest()
    before = town.where(job)
    migrate_job(town.user, job)
    town.rest()
    assert set(town.where(job)) != set(before)
    first, second = job.checkpoints.order_by("number")
    assert (first.periodic, second.periodic) == (True, False)
    assert [r.state for r in present(job).replicas.all()] == [State.RUNNING] * replicas
    assert not job.receipts.get().called_off


def test_where_a_replica_goes_it_is_hinted_at_as_soon_as_it_is_stored(town: Town) -> None:
    for name in ("n1", "n2", "n3", "n4"):
        town.node(name, 1)
    job = town.submit(replicas=2)
    town.rest()
    quick, slow = town.where(job)
    migrate_job(town.user, job)
    town.cycle()
    for name in (quick, slow, quick):
        town.puppets[name].step()
    held = job.placements.get(state="held")
    ahead = {
        seat.rank: [hint for hint in desired_state(seat.node_id).prefetch if hint.final]
        for seat in held.replicas.all()
    }
    assert ahead == {
        0: [Prefetch(job=job.id, rank=0, manifest=f"m/{job.id}-0-1", final=True)],
        1: [],
    }
    assert job.checkpoints.get().state == "under-way"
    town.rest()
    assert set(town.where(job)).isdisjoint({quick, slow})


def test_a_first_cut_that_fails_leaves_the_job_where_it_is(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.live.enacting.worthwhile", lambda _: True)
    puppet = town.node("n1", 1)
    town.node("n2", 1)
    job = town.submit()
    town.rest()
    (here,) = town.where(job)
    puppet = town.puppets[here]
    puppet.fails[Want.STORED] = ("disk-full", "The chunk store is full.")
    migrate_job(town.user, job)
    town.cycle()
    puppet.step()
    puppet.fails.clear()
    town.rest()
    assert town.where(job) == [here]
    assert "full" in job.receipts.get().called_off


def test_a_node_without_hints_costs_one_query_for_them(town: Town, job: Job) -> None:
    quiet = town.node("n9", 1)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        desired_state(quiet.node.id)
    assert len(asked) <= 4
