"""The table of acts: from each stage, each wish leads somewhere sensible."""

from __future__ import annotations

import pytest

from agents.lifecycle import ALIVE, STATES, Act, Contact, Stage, choose, recovered
from agents.protocol import Desired, Image, Launch, Want

LAUNCH = Launch(command=["true"])
IMAGE = Image(manifest="m")


def wanted(want: Want, **more: object) -> Desired:
    values: dict[str, object] = {"launch": LAUNCH, "checkpoint": 2, **more}
    return Desired(job=1, rank=0, epoch=1, want=want, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("want", "stage", "act"),
    [
        (Want.RUNNING, Stage.NEW, Act.PREPARE),
        (Want.RUNNING, Stage.PREPARED, Act.START),
        (Want.RUNNING, Stage.STARTING, Act.START),
        (Want.RUNNING, Stage.RESTORED, Act.THAW),
        (Want.RUNNING, Stage.RUNNING, Act.REST),
        (Want.RUNNING, Stage.FROZEN, Act.THAW),
        (Want.RUNNING, Stage.STORED, Act.THAW),
        (Want.RUNNING, Stage.PARKED, Act.RESTORE),
        (Want.RUNNING, Stage.EXITED, Act.COLLECT),
        (Want.RUNNING, Stage.FAILED, Act.REST),
        (Want.FROZEN, Stage.NEW, Act.PREPARE),
        (Want.FROZEN, Stage.PREPARED, Act.START),
        (Want.FROZEN, Stage.RESTORED, Act.FREEZE),
        (Want.FROZEN, Stage.RUNNING, Act.FREEZE),
        (Want.FROZEN, Stage.FROZEN, Act.STORE),
        (Want.FROZEN, Stage.EXITED, Act.COLLECT),
        (Want.STORED, Stage.RUNNING, Act.FREEZE),
        (Want.STORED, Stage.FROZEN, Act.STORE),
        (Want.STORED, Stage.STORED, Act.STORE),
        (Want.STORED, Stage.RESTORED, Act.FREEZE),
        (Want.STORED, Stage.FAILED, Act.REST),
        *((Want.ABSENT, stage, Act.END) for stage in Stage if stage is not Stage.GONE),
        (Want.ABSENT, Stage.GONE, Act.FORGET),
    ],
)
def test_the_next_act(want: Want, stage: Stage, act: Act) -> None:
    assert choose(wanted(want), stage) is act


def test_an_image_is_restored_rather_than_launched() -> None:
    assert choose(wanted(Want.RUNNING, image=IMAGE), Stage.NEW) is Act.RESTORE
    assert choose(wanted(Want.RUNNING, image=IMAGE), Stage.RESTORING) is Act.RESTORE


@pytest.mark.parametrize("stage", [Stage.PREPARED, Stage.RESTORED])
def test_what_is_held_waits(stage: Stage) -> None:
    assert choose(wanted(Want.RUNNING, hold=True), stage) is Act.REST


@pytest.mark.parametrize("stage", [Stage.FROZEN, Stage.STORED])
def test_what_has_run_is_not_held_again(stage: Stage) -> None:
    assert choose(wanted(Want.RUNNING, hold=True), stage) is Act.THAW


def test_not_named_is_wanted_absent() -> None:
    assert {choose(None, stage) for stage in Stage} == {Act.END, Act.FORGET}


def test_a_checkpoint_is_stored_once() -> None:
    store = wanted(Want.STORED)
    assert choose(store, Stage.STORED, checkpoint=2) is Act.REST
    assert choose(store, Stage.STORED, checkpoint=1) is Act.STORE


def test_a_checkpoint_that_failed_is_not_tried_under_the_same_number() -> None:
    assert choose(wanted(Want.STORED), Stage.FROZEN, tried=2) is Act.REST
    assert choose(wanted(Want.STORED, checkpoint=3), Stage.FROZEN, tried=2) is Act.STORE


def test_what_stands_still_to_leave_is_stored_ahead_of_the_others() -> None:
    frozen = wanted(Want.FROZEN)
    assert choose(frozen, Stage.STORED, checkpoint=2) is Act.REST
    assert choose(frozen, Stage.FROZEN, tried=2) is Act.REST


def test_what_is_to_run_on_is_not_dumped_before_all_stand_still() -> None:
    assert choose(wanted(Want.FROZEN, run_on=True), Stage.FROZEN) is Act.REST


def test_what_is_only_paused_is_not_dumped() -> None:
    assert choose(wanted(Want.FROZEN, checkpoint=0), Stage.FROZEN) is Act.REST


def test_a_periodic_checkpoint_does_not_freeze_it_again() -> None:
    periodic = wanted(Want.STORED, run_on=True)
    assert choose(periodic, Stage.RUNNING, checkpoint=1) is Act.FREEZE
    assert choose(periodic, Stage.RUNNING, checkpoint=1, tried=2) is Act.REST
    assert choose(periodic, Stage.RUNNING, checkpoint=2) is Act.REST


def test_outputs_are_collected_once() -> None:
    assert choose(wanted(Want.RUNNING), Stage.EXITED, collected=True) is Act.REST


@pytest.mark.parametrize("stage", list(Stage))
def test_out_of_contact_nothing_is_begun_or_ended(stage: Stage) -> None:
    for contact in (Contact.NONE, Contact.LAPSED):
        act = choose(None, stage, contact=contact)
        assert act in (Act.REST, Act.COLLECT, Act.FREEZE)
        assert (act is Act.FREEZE) == (contact is Contact.LAPSED and stage is Stage.RUNNING)


@pytest.mark.parametrize("stage", list(Stage))
def test_closing_leaves_nothing_alive(stage: Stage) -> None:
    act = choose(wanted(Want.RUNNING), stage, contact=Contact.CLOSING)
    assert (act in (Act.FREEZE, Act.PARK)) == (stage in ALIVE)


def test_every_stage_has_a_state() -> None:
    assert STATES.keys() == set(Stage)


@pytest.mark.parametrize(
    ("stage", "found", "becomes"),
    [
        (Stage.NEW, "gone", Stage.NEW),
        (Stage.PREPARED, "gone", Stage.NEW),
        (Stage.STARTING, "gone", Stage.NEW),
        (Stage.STARTING, "running", Stage.RUNNING),
        (Stage.STARTING, "exited", Stage.EXITED),
        (Stage.RESTORING, "gone", Stage.NEW),
        (Stage.RESTORING, "frozen", Stage.RESTORING),
        (Stage.RESTORED, "frozen", Stage.RESTORED),
        (Stage.RUNNING, "running", Stage.RUNNING),
        (Stage.RUNNING, "frozen", Stage.FROZEN),
        (Stage.RUNNING, "gone", Stage.FAILED),
        (Stage.FROZEN, "frozen", Stage.FROZEN),
        (Stage.FROZEN, "running", Stage.RUNNING),
        (Stage.STORED, "frozen", Stage.STORED),
        (Stage.STORED, "gone", Stage.FAILED),
        (Stage.PARKED, "gone", Stage.PARKED),
        (Stage.EXITED, "gone", Stage.EXITED),
        (Stage.FAILED, "gone", Stage.FAILED),
    ],
)
def test_what_is_found_after_a_restart(stage: Stage, found: str, becomes: Stage) -> None:
    assert recovered(stage, found) is becomes


def test_a_running_replica_gets_its_cpus_before_it_is_measured() -> None:
    running = wanted(Want.RUNNING)
    assert choose(running, Stage.RUNNING, limited=False, profiled=False) is Act.LIMIT
    assert choose(running, Stage.RUNNING, profiled=False) is Act.PROFILE
    assert choose(wanted(Want.FROZEN), Stage.RUNNING, limited=False, profiled=False) is Act.FREEZE
    assert choose(running, Stage.FROZEN, limited=False, profiled=False) is Act.THAW
    alone = choose(running, Stage.RUNNING, limited=False, contact=Contact.NONE)
    assert alone is Act.REST
