"""What comes in between is waited for, and a scene that did not come about is played again."""

from __future__ import annotations

import pytest

from portal.demo.fleet import Fleet, NotSoError
from portal.demo.story import TRIES, Account, Stage, have_moved, judge, push, submit
from tests.portal.demo.stand_in import StandIn, receipt


def stage_of(portal: StandIn) -> Stage:
    return Stage(portal.fleet(), portal.fleet(), portal.said.append, nodes=2, devices=2)


def test_a_job_that_was_pushed_off_is_asked_to_move_once_it_runs(portal: StandIn) -> None:
    job = portal.jobs[portal.add(5, state="waiting")]
    portal.soon(
        *[lambda: None] * 4,
        lambda: job.update(state="running"),
        *[lambda: None] * 6,
        lambda: portal.receipts.update({5: [receipt("preempt"), receipt("migrate")]}),
    )
    assert have_moved(portal.fleet(), 5)
    assert portal.asked == ["jobs/5/migrate/"], "asked once, and not while it waits"


def test_a_refused_and_a_called_off_move_are_asked_again(portal: StandIn) -> None:
    job = portal.jobs[portal.add(5)]
    portal.refusal = "Only a running job can be moved."
    portal.soon(
        *[lambda: None] * 5,
        lambda: setattr(portal, "refusal", ""),
        *[lambda: None] * 6,
        lambda: portal.receipts.update({5: [receipt("migrate", done=False)]}),
        lambda: job.update(move_asked=False),
        *[lambda: None] * 6,
        lambda: portal.receipts.update({5: [receipt("migrate", done=False, called_off="full")]}),
        *[lambda: None] * 6,
        lambda: portal.receipts.update({5: [receipt("migrate")]}),
    )
    assert have_moved(portal.fleet(), 5)
    assert job["move_asked"], "asked again after it was called off"


def test_a_job_that_ended_first_was_not_moved(portal: StandIn) -> None:
    portal.add(5, state="succeeded")
    assert not have_moved(portal.fleet(), 5)


def test_a_scene_is_played_again_and_leaves_no_job(portal: StandIn) -> None:
    stage, played = stage_of(portal), iter([None, "done"])

    def scene() -> str | None:
        submit(stage.ana, "training", "basic", steps=40)
        return next(played)

    assert stage.until_it_comes_about(scene) == "done"
    assert [job["state"] for job in portal.jobs.values()] == ["cancelled", "running"]


def test_a_fleet_that_others_use_all_the_time_is_told_of(portal: StandIn) -> None:
    stage, played = stage_of(portal), []
    with pytest.raises(NotSoError, match="when nobody else uses the fleet"):
        stage.until_it_comes_about(lambda: played.append(1))
    assert len(played) == TRIES


def test_a_premium_job_that_found_free_devices_is_no_story(
    portal: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fleet, "wait_for_step", lambda self, id, step: None)
    assert push(stage_of(portal), 40, 0.0) is None
    assert portal.said[-1] == "It found devices that were free already; once more"


def test_what_is_wrong_is_told() -> None:
    good = Account(name="reference", job=1, tier="basic", steps=[1, 2], weights="a")
    twice = Account(name="mover", job=2, tier="basic", steps=[1, 1, 2], weights="b")
    assert judge([good], 2) == []
    assert judge([good, twice], 2) == [
        "Mover did not compute every step once and in order.",
        "Mover ended with other weights than the undisturbed run.",
    ]
    assert twice.lost == 1
