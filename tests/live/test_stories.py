"""Whole lives of jobs, from submission to end, through the real rows and the real cycle."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agents.protocol import Facts, ReplicaFact, State, Want
from portal.actions.ending import AVOIDED, CRASHES, STUMBLES
from portal.actions.facts import accept_facts
from portal.actions.steering import (
    cancel_job,
    checkpoint_job,
    migrate_job,
    pause_job,
    resize_job,
    resume_job,
)
from portal.models import Checkpoint, Node, Placement
from portal.refusals import Refused
from tests.live.puppets import STILL, Town


def test_a_job_runs_and_succeeds(town: Town) -> None:
    puppet = town.node("n1")
    job = town.submit()
    town.rest()
    job.refresh_from_db()
    assert job.state == "running"
    puppet.ends[job.id] = 0
    town.rest()
    job.refresh_from_db()
    assert (job.state, job.exit_code) == ("succeeded", 0)
    assert not Placement.objects.exclude(state="ended").exists()


def test_a_gang_starts_together_and_a_failing_rank_ends_its_peers(town: Town) -> None:
    one, two = town.node("n1", 1), town.node("n2", 1)
    job = town.submit(replicas=2)
    town.rest()
    assert sorted(town.where(job)) == ["n1", "n2"]
    one.ends[job.id] = 3
    town.rest()
    job.refresh_from_db()
    assert (job.state, job.exit_code) == ("failed", 3)
    assert "exited with 3" in job.detail
    assert not two.replicas


def test_a_more_important_job_pushes_one_off_and_it_goes_on_from_its_checkpoint(
    town: Town,
) -> None:
    puppet = town.node("n1", 1)
    lesser = town.submit("basic")
    town.rest()
    greater = town.submit("premium")
    town.rest()
    lesser.refresh_from_db()
    greater.refresh_from_db()
    assert (lesser.state, greater.state) == ("waiting", "running")
    assert lesser.sentence
    puppet.ends[greater.id] = 0
    town.rest()
    lesser.refresh_from_db()
    assert lesser.state == "running"
    placement = lesser.placements.get(state="active")
    assert placement.checkpoint is not None
    assert placement.checkpoint.number == 1
    receipt = lesser.receipts.get()
    assert (receipt.kind, receipt.beneficiary_id, receipt.bytes_new) == ("preempt", greater.id, 10)
    assert receipt.resumed_at is not None


def test_a_job_is_moved_where_a_person_says(town: Town) -> None:
    town.node("n1", 1)
    town.node("n2", 1)
    job = town.submit()
    town.rest()
    (here,) = town.where(job)
    there = "n2" if here == "n1" else "n1"
    migrate_job(town.user, job, there)
    town.rest()
    assert town.where(job) == [there]
    receipt = job.receipts.get()
    assert (receipt.kind, receipt.asked_by) == ("migrate", town.user)
    assert receipt.to_nodes == [there]


def test_a_gang_is_frozen_before_any_of_it_is_stored(town: Town) -> None:
    one, two = town.node("n1", 1), town.node("n2", 1)
    job = town.submit(replicas=2)
    town.rest()
    two.obeys = False
    pause_job(town.user, job)
    one.step()
    placement = job.placements.get(state="active")
    assert placement.want == Want.FROZEN
    two.obeys = True
    two.step()
    placement.refresh_from_db()
    assert placement.want == Want.STORED
    town.rest()
    job.refresh_from_db()
    assert job.state == "paused"
    assert Checkpoint.objects.get(job=job).images.count() == 2


def test_resumed_while_it_still_leaves(town: Town) -> None:
    puppet = town.node("n1", 1)
    job = town.submit()
    town.rest()
    pause_job(town.user, job)
    resume_job(town.user, job)
    town.rest()
    assert town.where(job) == ["n1"]
    assert job.epoch == 2, "it left, and came back at the same step"
    assert puppet.computed[-1] == (job.id, 0, 2)


def test_a_failing_dump_leaves_the_job_running(town: Town) -> None:
    puppet = town.node("n1", 1)
    job = town.submit()
    town.rest()
    puppet.fails[Want.STORED] = ("disk-full", "The chunk store is full.")
    pause_job(town.user, job)
    puppet.step()
    puppet.fails.clear()
    town.rest()
    job.refresh_from_db()
    assert job.state == "running"
    assert "full" in job.receipts.get().called_off
    assert len(puppet.computed) == 2, "thawed, not started again"


def test_pause_in_place_gives_the_devices_back_and_comes_back_to_the_node(town: Town) -> None:
    puppet = town.node("n1", 1, abilities=STILL)
    town.node("n2", 1, abilities=STILL)
    first = town.submit()
    town.rest()
    (home,) = town.where(first)
    pause_job(town.user, first)
    town.rest()
    first.refresh_from_db()
    assert (first.state, first.remedy) == ("paused", "pause")
    second, third = town.submit(), town.submit()
    town.rest()
    assert {*town.where(second), *town.where(third)} == {"n1", "n2"}
    resume_job(town.user, first)
    town.rest()
    first.refresh_from_db()
    assert first.state == "waiting"
    cancel_job(town.user, second)
    cancel_job(town.user, third)
    town.rest()
    assert town.where(first) == [home]
    assert first.epoch == 1 or first.placements.count() == 1
    assert puppet.node.name in ("n1", "n2")


def test_a_lost_node_sends_its_job_back_to_the_last_checkpoint(town: Town) -> None:
    town.node("n1", 1)
    job = town.submit(checkpoint_every_s=60)
    town.rest()
    town.pass_time(61)
    Node.objects.update(heard_at=town.now)
    town.rest()
    assert Checkpoint.objects.get(job=job).state == "committed"
    town.node("n2", 1)
    town.puppets["n1"].obeys = False
    Node.objects.filter(name="n1").update(heard_at=town.now)
    town.pass_time(31)
    Node.objects.filter(name="n2").update(heard_at=town.now)
    reconcile_and_rest(town)
    assert town.where(job) == ["n2"]
    assert job.placements.get(state="active").checkpoint is not None
    receipt = job.receipts.get()
    assert receipt.kind == "recover"
    assert receipt.lost_s >= 31, "what it did since the checkpoint"
    assert job.epoch == 2


def test_a_checkpoint_of_a_place_that_is_lost_is_given_up(town: Town) -> None:
    town.node("n1", 1)
    job = town.submit()
    town.rest()
    town.puppets["n1"].obeys = False
    checkpoint_job(town.user, job)
    Node.objects.update(heard_at=town.now)
    town.pass_time(31)
    reconcile_and_rest(town)
    assert job.receipts.get().kind == "recover"
    cut = Checkpoint.objects.get(job=job)
    assert (cut.state, cut.collected) == ("discarded", True)
    assert "lost its place" in cut.error


def reconcile_and_rest(town: Town) -> None:
    from portal.actions.linking import give_up_silent_nodes

    assert give_up_silent_nodes(town.now) == ["n1"]
    town.rest()


def test_retries_go_on_from_the_last_checkpoint_until_they_are_used_up(town: Town) -> None:
    puppet = town.node("n1", 1)
    job = town.submit(retries=1)
    town.rest()
    puppet.ends[job.id] = 1
    town.rest()
    job.refresh_from_db()
    assert (job.state, job.retried) == ("failed", 1)
    assert job.receipts.filter(kind="retry").count() == 1


def test_a_job_that_dies_at_each_start_is_not_tried_for_ever(town: Town) -> None:
    puppet = town.node("n1", 1)
    job = town.submit(retries=50)
    puppet.ends[job.id] = 3
    town.rest()
    job.refresh_from_db()
    assert (job.state, job.error, job.retried) == ("failed", "crash-loop", CRASHES - 1)
    assert "a crash loop" in job.detail


def test_deaths_after_a_longer_life_are_no_crash_loop(town: Town) -> None:
    puppet = town.node("n1", 1)
    job = town.submit(retries=50)
    town.rest()
    for retry in range(1, CRASHES + 3):
        # It has run for a while by the time that it dies.
        job.placements.filter(state="active").update(running_at=town.now - timedelta(minutes=1))
        puppet.ends[job.id] = 3
        puppet.step()
        del puppet.ends[job.id]
        town.rest()
        job.refresh_from_db()
        assert (job.state, job.retried) == ("running", retry)


def test_a_start_that_fails_through_the_node_is_tried_elsewhere(town: Town) -> None:
    bad = town.node("n1", 1)
    bad.fails[Want.RUNNING] = ("restore-failed", "criu said no")
    job = town.submit()
    town.rest()
    town.node("n2", 1)
    town.rest()
    assert town.where(job) == ["n2"]


def test_a_replica_that_vanishes_costs_what_was_done_since_the_checkpoint(town: Town) -> None:
    puppet = town.node("n1", 1)
    town.node("n2", 1)
    job = town.submit()
    town.rest()
    (here,) = town.where(job)
    puppet = town.puppets[here]
    checkpoint_job(town.user, job)
    town.rest()
    (key,) = puppet.replicas
    vanished = {"error": "node-restarted", "detail": "The machine was restarted."}
    told = ReplicaFact(job=key[0], rank=key[1], epoch=key[2], state=State.FAILED, **vanished)
    accept_facts(puppet.node.id, Facts(number=0, replicas=[told]))
    receipt = job.receipts.get(kind="recover")
    assert receipt.sentence == f"{here}: The machine was restarted."
    town.rest()
    assert town.where(job) == ["n2" if here == "n1" else "n1"]
    receipt.refresh_from_db()
    assert receipt.resumed_at is not None
    assert job.placements.get(state="active").checkpoint is not None


def test_a_node_that_failed_once_is_tried_again_later(town: Town) -> None:
    only = town.node("n1", 1)
    only.fails[Want.RUNNING] = ("restore-failed", "criu said no")
    job = town.submit()
    town.rest()
    only.fails.clear()
    town.rest()
    assert town.where(job) == []
    town.pass_time(AVOIDED.total_seconds() + 1)
    town.rest()
    assert town.where(job) == ["n1"]
    job.refresh_from_db()
    assert (job.error, job.detail, job.avoid_nodes) == ("", "", {})


def test_what_cannot_be_restored_anywhere_is_paused_and_not_lost(town: Town) -> None:
    puppet = town.node("n1", 1)
    job = town.submit()
    town.rest()
    pause_job(town.user, job)
    town.rest()
    resume_job(town.user, job)
    puppet.fails[Want.RUNNING] = ("store-unreachable", "The store is away.")
    for _ in range(STUMBLES + 2):
        town.rest()
        town.pass_time(AVOIDED.total_seconds() + 1)
    job.refresh_from_db()
    assert (job.state, job.stumbles) == ("paused", STUMBLES + 1)
    assert "The store is away." in job.sentence
    puppet.fails.clear()
    resume_job(town.user, job)
    town.rest()
    assert town.where(job) == ["n1"]
    assert job.placements.get(state="active").checkpoint is not None


def test_what_never_began_is_given_up_after_some_failed_starts(town: Town) -> None:
    puppet = town.node("n1", 1)
    puppet.fails[Want.RUNNING] = ("portal-unreachable", "The portal is away.")
    job = town.submit()
    for _ in range(STUMBLES + 2):
        town.rest()
        town.pass_time(AVOIDED.total_seconds() + 1)
    job.refresh_from_db()
    assert (job.state, job.stumbles) == ("failed", STUMBLES + 1)


def test_a_users_mistake_fails_the_job_at_once(town: Town) -> None:
    puppet = town.node("n1", 1)
    puppet.fails[Want.RUNNING] = ("command-not-found", "There is no command 'pyhton'.")
    job = town.submit()
    town.rest()
    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "command-not-found")
    assert "pyhton" in job.detail


def test_cancelling_frees_the_devices(town: Town) -> None:
    puppet = town.node("n1", 1)
    job, next_one = town.submit(), town.submit()
    town.rest()
    cancel_job(town.user, job)
    town.rest()
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert town.where(next_one) == ["n1"]
    assert [key[0] for key in puppet.replicas] == [next_one.id]
    with pytest.raises(Refused, match="has ended"):
        pause_job(town.user, job)


def test_resize_by_hand_keeps_the_replicas_and_changes_the_devices(town: Town) -> None:
    town.node("n1", 4)
    job = town.submit(replicas=4, fewest_devices=1)
    town.rest()
    with pytest.raises(Refused, match="of devices: 4, 2, 1"):
        resize_job(town.user, job, 3)
    resize_job(town.user, job, 2)
    town.rest()
    placement = job.placements.get(state="active")
    assert placement.devices == 2
    assert [replica.sharers for replica in placement.replicas.all()] == [2, 2, 2, 2]
    town.rest()
    assert job.placements.get(state="active") == placement, "it is not grown again by itself"
    resize_job(town.user, job, 4)
    town.rest()
    assert job.placements.get(state="active").devices == 4
