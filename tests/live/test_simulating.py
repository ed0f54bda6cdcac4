"""What if, from a row to its results: the fleet's own days or a file, as it is and changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone

from portal.actions import playing
from portal.actions import simulations as actions
from portal.actions.playing import forget_traces, give_up_silent
from portal.actions.simulations import (
    Question,
    ask_simulation,
    cancel_simulation,
    remove_simulation,
)
from portal.choices import SimulationState
from portal.models import Job, Move, Simulation, User
from portal.refusals import Refused
from scheduler.live import simulating
from scheduler.live.history import history, learned_costs, measured_of
from scheduler.live.simulating import cases_of, run_next
from scheduler.simulator import Costs, simulate
from tests.live.puppets import Town
from tests.live.test_allotting import CONTENT, HUNGRY, measured

pytestmark = pytest.mark.timeout(400)  # a simulation steps back behind everyone
OWN = b"submit_time,duration,gpus\n0,100,1\n10,100,1\n20,100,2\n"


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> list[str]:
    """The times that a worker was sent for."""
    settings.MEDIA_ROOT = tmp_path
    sent: list[str] = []
    for module in (actions, playing, simulating):
        monkeypatch.setattr(module, "send_for_worker", lambda: sent.append("work"))
    return sent


def ask(root: User, **fields: Any) -> Simulation:
    return ask_simulation(root, Question(**fields))


@pytest.mark.slow
def test_a_trace_is_played_as_it_is_and_with_more_nodes(town: Town, root: User) -> None:
    town.node("n1", 1)
    file = ContentFile(OWN + b"x,y,z\n", name="mine.csv")
    asked = ask(root, trace=file, more_nodes=3, like_node="n1")
    run_next()
    asked.refresh_from_db()
    assert (asked.state, asked.share, asked.runs) == ("done", 1.0, ["as it is", "changed"])
    rows = {name: cells for name, *cells in asked.table}
    assert rows["Jobs finished"] == ["2", "3"], "the job of two devices needs two nodes"
    assert "3 jobs of mine" in asked.detail
    assert "1 line could not be read" in asked.detail
    assert asked.broken == ["line 5: gpus is not a number: 'z'"]
    assert [run["finished"] for run in asked.measures] == [2, 3]
    assert asked.costs["moves"] == 0
    assert len(asked.figures) == 4
    assert asked.title == "3 more like n1"


@pytest.mark.slow
def test_the_fleets_own_days_are_played_with_another_quota(town: Town, root: User) -> None:
    puppet = town.node("n1", 2)
    job = town.submit(expected_s=600.0)
    town.rest()
    puppet.ends[job.id] = 0
    town.rest()
    Job.objects.filter(pk=job.pk).update(worked_s=500.0)
    town.submit(expected_s=60.0)
    assert [each.duration_s for each in history(7).arrivals] == [500.0, 60.0]
    quota = {"tenant": "vision", "device_kind": "", "reserved": 0, "borrow": 0, "lend": True}
    asked = ask(root, days=7, quota=quota)
    run_next()
    asked.refresh_from_db()
    assert asked.state == "done", asked.detail
    assert asked.table[0] == ["Jobs finished", "2", "0"]


def test_what_was_measured_here_is_what_sharing_goes_by(town: Town, root: User) -> None:
    puppet = town.node("n1", 2, kind="H100")
    for command, profile in (("idle", CONTENT), ("busy", HUNGRY)):
        job = town.submit(command=[command], expected_s=3000.0)
        town.rest()
        measured(town, puppet, job, profile)
    asking = town.submit(command=["busy"], cpus_per_replica=8.0)
    trace = history(7)
    assert [arrival.model for arrival in trace.arrivals][2] == "", asking
    found = measured_of(trace)
    assert set(found) == {arrival.model for arrival in trace.arrivals[:2]}
    asked = ask(root, days=7, sharing="tune")
    assert asked.title == "CPUs shared by need"
    plain, shared = cases_of(asked, Costs(), found)
    assert plain.sensitivity is None
    assert shared.sensitivity is not None
    short = replace(trace, arrivals=trace.arrivals[:2])
    took = [
        [outcome.completion_s for outcome in
         simulate(short, case.fleet, case.policy, sensitivity=case.sensitivity).outcomes]
        for case in (plain, shared)
    ]  # fmt: skip
    assert took[1][0] == pytest.approx(took[0][0]), "who lends is not slowed"
    assert took[1][1] < 0.75 * took[0][1]
    assert len(cases_of(ask(root, days=7, policy="fifo"), Costs(), found)) == 2


@pytest.mark.slow
def test_what_cannot_be_played_says_why(town: Town, root: User, sent: list[str]) -> None:
    first = ask(root, days=7)
    second = ask(root, trace=ContentFile(b"a,b\n1,2\n", name="odd.csv"))
    sent.clear()
    run_next()
    assert sent == ["work"], "another one waits"
    run_next()
    for asked in (first, second):
        asked.refresh_from_db()
        assert (asked.state, "no nodes yet" in asked.detail) == ("failed", True)
    town.node("n1", 1)
    third = ask(root, days=7)
    fourth = ask(root, trace=ContentFile(b"a,b\n1,2\n", name="odd.csv"))
    fifth = ask(root, trace=ContentFile(OWN + b"x,y,z\n", name="odd.csv"), strict=True)
    for _ in range(3):
        run_next()
    for asked, words in (
        (third, "no job in the last 7 days"),
        (fourth, "no known format"),
        (fifth, "line 5: gpus"),
    ):
        asked.refresh_from_db()
        assert asked.state == "failed"
        assert words in asked.detail


def test_one_is_played_at_a_time_and_a_silent_one_is_given_up(
    town: Town, root: User, sent: list[str]
) -> None:
    first, second = ask(root, days=1), ask(root, days=2)
    claimed = playing.claim_next()
    assert claimed == first
    assert playing.claim_next() is None
    give_up_silent(timezone.now())
    first.refresh_from_db()
    assert first.state == "running"
    sent.clear()
    later = timezone.now() + timedelta(minutes=5)
    give_up_silent(later)
    first.refresh_from_db()
    assert (first.state, sent) == ("queued", ["work"]), "it is begun again, once"
    again = playing.claim_next()
    assert again == first
    assert not playing.note_progress(claimed, 0.9), "the lost worker has no say any more"
    assert not playing.settle(claimed, SimulationState.DONE)
    give_up_silent(later)
    first.refresh_from_db()
    assert (first.state, "lost 2 times" in first.detail) == ("failed", True)
    assert playing.claim_next() == second


def test_it_is_called_off_while_it_runs(
    town: Town, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.node("n1", 1)
    asked = ask(root, trace=ContentFile(OWN, name="mine.csv"))
    told: list[bool] = []

    def beside(play: Any, going_on: Any) -> None:
        told.append(going_on(0.3))
        cancel_simulation(root, asked)
        told.append(going_on(0.6))

    monkeypatch.setattr(simulating, "play_beside", beside)
    run_next()
    asked.refresh_from_db()
    assert told == [True, False]
    assert asked.state == "cancelled"
    assert 0 < asked.share < 1


def test_wrong_questions_are_refused_at_their_fields(town: Town, root: User, alice: User) -> None:
    for wrong, field in (
        ({}, "trace"),
        ({"days": 0}, "days"),
        ({"days": 1, "policy": "best"}, "policy"),
        ({"days": 1, "more_nodes": 1, "like_node": "nothing"}, "like_node"),
        ({"days": 1, "pricing": "free"}, "pricing"),
        ({"days": 1, "tiers": {"gold": {"rank": 1}}}, "tiers.gold"),
        ({"days": 1, "tiers": {"basic": {"promise": 1.5}}}, "tiers.basic.promise"),
        ({"trace": ContentFile(b"", name="none.csv")}, "trace"),
    ):
        with pytest.raises(Refused) as refusal:
            ask(root, **wrong)
        assert list(refusal.value.fields) == [field]
    for _ in range(actions.MOST_WAITING):
        ask(root, days=1)
    with pytest.raises(Refused) as refusal:
        ask(root, days=1)
    assert refusal.value.conflict


@pytest.mark.slow
def test_another_promise_and_rank_of_a_tier_are_played(town: Town, root: User) -> None:
    town.node("n1", 1)
    lines = b"submit_time,duration,gpus,tier\n0,4000,1,premium\n10,100,1,basic\n"
    file = ContentFile(lines, name="mine.csv")
    tiers = {"basic": {"promise": 0.5, "rank": 9}, "premium": {"rank": 0}}
    asked = ask(root, trace=file, tiers=tiers, policy="eager", pricing="off")
    run_next()
    asked.refresh_from_db()
    assert asked.state == "done", asked.detail
    rows = {name: cells for name, *cells in asked.table}
    assert rows["Preemptions"] == ["0", "1"], "the lower tier now pushes off the higher one"
    assert rows["Basic promises kept, %"] == [None, "100.0"]
    assert asked.title == "policy eager, basic promises 50 % and of rank 9, premium of rank 0"
    assert asked.costs["checkpoint_s"] == 0


def test_moves_cost_what_they_cost_here(town: Town, root: User) -> None:
    assert learned_costs().costs == Costs()
    job = town.submit()
    for number in range(4):
        Move.objects.create(
            job=job,
            kind="migrate",
            began_at=timezone.now() + timedelta(seconds=number),
            resumed_at=9.0,
            from_devices=2,
            from_nodes=["a"],
            to_nodes=["b"],
            bytes_raw=4 * 10**9,
            phases={"gate": 0.5, "dump": 1.5, "store": 2.0, "fetch": 6.0, "restore": 3.0},
        )
    Move.objects.create(job=job, kind="migrate", began_at=timezone.now(), called_off="no room")
    learned = learned_costs()
    assert learned.moves == 4
    assert (learned.costs.checkpoint_s, learned.costs.restore_s) == (2.0, 3.0)
    assert (learned.costs.store_gb_s, learned.costs.image_gb_per_gpu) == (1.0, 2.0)
    assert history(1).arrivals[0].image == 4 * 10**9
    shown = simulating.pricing_of(ask(root, days=1))
    assert shown == learned
    assert simulating.pricing_of(ask(root, days=1, pricing="default")).costs == Costs()
    own = ask(root, trace=ContentFile(OWN, name="mine.csv"))
    assert simulating.pricing_of(own).costs == Costs()


def test_an_uploaded_trace_is_removed_in_the_end_and_what_it_showed_stays(
    town: Town, root: User, settings: Any
) -> None:
    asked = ask(root, trace=ContentFile(OWN, name="mine.csv"))
    path = Path(asked.trace.path)
    later = timezone.now() + timedelta(days=settings.TRACES_KEPT + 1)
    assert forget_traces(later) == 0, "it has not been played yet"
    playing.settle(asked, SimulationState.DONE, runs=["as it is"])
    assert (forget_traces(timezone.now()), path.exists()) == (0, True)
    assert (forget_traces(later), path.exists()) == (1, False)
    asked.refresh_from_db()
    assert (asked.filename, asked.trace_size, asked.runs) == ("mine.csv", 0, ["as it is"])


def test_traces_have_a_limit_together_and_go_with_their_simulation(
    town: Town, root: User, settings: Any
) -> None:
    settings.TRACES_LIMIT = len(OWN) + 10
    asked = ask(root, trace=ContentFile(OWN, name="mine.csv"))
    with pytest.raises(Refused) as refusal:
        ask(root, trace=ContentFile(OWN, name="mine.csv"))
    assert "All traces together" in refusal.value.fields["trace"]
    with pytest.raises(Refused) as refusal:
        remove_simulation(root, asked)
    assert refusal.value.conflict
    path = Path(asked.trace.path)
    cancel_simulation(root, asked)
    remove_simulation(root, asked)
    assert not path.exists()
    ask(root, trace=ContentFile(OWN, name="mine.csv"))
