"""What a move of four replicas asks of the database while they stand still, message by message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.protocol import Facts, ReplicaFact, State, Want
from portal.actions.desired import desired_states
from portal.actions.facts import accept_facts
from portal.actions.placing import activate_held
from portal.actions.settling import settle_all
from portal.actions.steering import migrate_job
from portal.models import Job, PlacedReplica
from tests.live.conftest import town
from tests.live.puppets import Town

__all__ = ["town"]


class Mover:
    """Four replicas that tell one after the other what they are, and what that costs."""

    def __init__(self, town: Town) -> None:
        for number in range(4):
            town.node(f"n{number}", 2)
        self.town = town
        self.job = town.submit(replicas=4)
        town.rest()
        self.costs: dict[str, list[int]] = {}

    def stop(self) -> None:
        migrate_job(self.town.user, self.job)
        self.town.cycle()

    @contextmanager
    def counted(self, what: str) -> Iterator[None]:
        with CaptureQueriesContext(connection) as queries:
            yield
        self.costs.setdefault(what, []).append(len(queries))

    def seats(self) -> list[PlacedReplica]:
        present = self.job.placements.get(state="active")
        return list(present.replicas.select_related("node", "placement").order_by("rank"))

    def tell(self, state: State, **more: Any) -> None:
        """Each replica reaches a state, and its node tells of all that are on it."""
        for seat in self.seats():
            puppet = self.town.puppets[seat.node.name]
            epoch = seat.placement.epoch
            told = ReplicaFact(job=self.job.id, rank=seat.rank, epoch=epoch, state=state, **more)
            puppet.replicas[self.job.id, seat.rank, epoch] = told
            own = [fact for key, fact in puppet.replicas.items() if key[2] == epoch]
            with self.counted(state.value):
                accept_facts(puppet.node.id, Facts(number=1, replicas=own))

    def hear(self, what: str) -> None:
        """All nodes are told what is wanted of them now."""
        nodes = {puppet.node.id for puppet in self.town.puppets.values()}
        with self.counted(what):
            desired_states(nodes)


@pytest.fixture
def mover(town: Town) -> Mover:
    return Mover(town)


def test_only_the_last_of_several_replicas_costs_more_than_its_own_row(mover: Mover) -> None:
    mover.stop()
    mover.tell(State.FROZEN, stopped_at=999.0)
    mover.hear("to store")
    mover.tell(State.STORED, checkpoint=1, manifest="m", bytes_raw=5, stopped_at=999.0)
    mover.hear("to restore")
    mover.tell(State.PREPARING)
    mover.tell(State.READY)
    mover.hear("to go on")
    mover.tell(State.RUNNING, started_at=1000.0)
    assert Job.objects.get().state == "running"
    most = {"frozen": (6, 11), "preparing": (6, 6), "ready": (6, 11), "running": (6, 15)}
    most["stored"] = (9, 26)  # where it goes is told of each
    lock = int(connection.features.has_select_for_update)
    for state, (each, at_the_end) in most.items():
        *others, last = mover.costs[state]
        assert max(others) <= each + lock, f"{state}: {others}"
        assert last <= at_the_end + lock, f"{state}: {last}"
    for what in ("to store", "to restore", "to go on"):
        assert mover.costs[what] <= [7], what


def test_what_is_known_already_costs_one_look(mover: Mover) -> None:
    mover.tell(State.RUNNING, started_at=1000.0)
    mover.costs.clear()
    mover.tell(State.RUNNING, started_at=1000.0)
    assert mover.costs["running"] == [1, 1, 1, 1]


def test_a_tick_does_not_lock_a_job_for_which_nothing_follows(mover: Mover) -> None:
    mover.stop()
    for seat in mover.seats()[:3]:
        PlacedReplica.objects.filter(pk=seat.pk).update(state=State.FROZEN)
    with mover.counted("tick"):
        settle_all(mover.town.now)
        activate_held(mover.town.now)
    assert mover.costs["tick"] <= [6]


def test_a_step_that_a_report_has_missed_is_taken_by_the_tick(mover: Mover) -> None:
    """The portal may end between the fact and what follows from it."""
    mover.stop()
    present = mover.job.placements.get(state="active")
    present.replicas.update(state=State.FROZEN)
    settle_all(mover.town.now)
    present.refresh_from_db()
    assert present.want == Want.STORED


def test_replicas_that_stood_still_and_were_stored_at_once_wait_for_no_tick(mover: Mover) -> None:
    mover.stop()
    mover.tell(State.STORED, checkpoint=1, manifest="m", stopped_at=999.0)
    assert mover.job.checkpoints.get().state == "committed"
    assert Job.objects.get().state == "starting"


def test_a_move_has_nobody_plan_while_nobody_waits(
    mover: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    monkeypatch.setattr("portal.events._want", lambda mark, task, *args: woken.append(task))
    mover.stop()
    woken.clear()
    mover.town.rest()
    assert mover.town.where(mover.job) == ["n2", "n2", "n3", "n3"]
    assert woken == []
    mover.town.submit(replicas=8)
    woken.clear()
    mover.stop()
    mover.town.rest()
    assert woken, "somebody may come to where it left"


def test_no_second_is_lost_to_the_books_by_a_move(mover: Mover) -> None:
    mover.stop()
    mover.town.rest()
    job = Job.objects.get()
    assert (job.state, job.moves) == ("running", 1)
    assert job.accounted_at is not None
    seconds = (job.accounted_at - job.submitted_at).total_seconds()
    assert job.entitled == pytest.approx(4 * seconds)
    assert 0 < job.delivered < job.entitled
