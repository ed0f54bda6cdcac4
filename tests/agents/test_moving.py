"""Checkpoints, restores and what happens to them when something fails."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from agents import acts, replica
from agents.checkpoints import StoreUnreachableError
from agents.drivers.base import DriverError, Task
from agents.drivers.fake import FakeDriver
from agents.lifecycle import Act
from agents.protocol import Image, ReplicaFact, State, Want
from tests.agents.conftest import Begin
from tests.agents.portal import Portal, wish

pytestmark = pytest.mark.asyncio


async def stored(portal: Portal, *command: str, checkpoint: int = 1) -> ReplicaFact:
    """Run a replica and take it through both halves of a checkpoint."""
    await portal.want(wish(1, *command))
    await portal.fact(State.RUNNING)
    await portal.want(wish(1, *command, want=Want.FROZEN))
    await portal.fact(State.FROZEN)
    await portal.want(wish(1, *command, want=Want.STORED, checkpoint=checkpoint))
    return await portal.fact(State.STORED)


async def test_a_replica_moves_to_another_node(portal: Portal, begin: Begin) -> None:
    begin(node="n1")
    await portal.linked()
    fact = await stored(portal, "sleep", "1000", checkpoint=3)
    assert (fact.checkpoint, fact.error) == (3, "")
    assert fact.manifest
    assert 0 < fact.bytes_new <= fact.bytes_raw
    assert {"freeze", "dump", "store"} <= fact.phases.keys()
    await portal.want()
    await portal.until(lambda: portal.history[-1].state is State.ABSENT)
    async with Portal() as other:
        begin(other, node="n2")
        await other.linked()
        image = Image(manifest=fact.manifest)
        await other.want(wish(1, epoch=2, image=image, hold=True))
        ready = await other.fact(State.READY, epoch=2)
        assert {"fetch", "restore"} <= ready.phases.keys()
        await other.want(wish(1, epoch=2, image=image))
        running = await other.fact(State.RUNNING, epoch=2)
        assert "resume" in running.phases
        assert running.started_at > 0


async def back_on_its_node(portal: Portal, manifest: str) -> ReplicaFact:
    """Have the stored replica end, and begin again from its image where it was."""
    await portal.want()
    await portal.until(lambda: portal.history[-1].state is State.ABSENT)
    await portal.want(wish(1, epoch=2, image=Image(manifest=manifest)))
    await portal.until(lambda: (1, 0, 2) in portal.facts)
    await portal.until(
        lambda: portal.facts[1, 0, 2].state in (State.RUNNING, State.FAILED, State.EXITED)
    )
    return portal.facts[1, 0, 2]


async def test_what_a_replica_leaves_behind_keeps_nobody_waiting(
    portal: Portal, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acts, "LINGER_S", 3600)
    running = begin()
    await portal.linked()
    manifest = (await stored(portal, "sleep", "1000")).manifest
    await portal.want(wish(1, epoch=2, image=Image(manifest=manifest)))
    await portal.fact(State.RUNNING, epoch=2)
    assert portal.facts[1, 0, 1].state is State.STORED
    node = running.agent.node
    assert node.driver.inspect(node.bare_task("j1-r0-e1")).state == "exited"


async def test_an_image_that_is_kept_here_is_not_fetched(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin()
    await portal.linked()
    fact = await stored(portal, "sleep", "1000")
    shutil.rmtree(tmp_path / "store" / "p")
    assert (await back_on_its_node(portal, fact.manifest)).state is State.RUNNING


async def test_a_kept_image_that_was_altered_is_fetched_anew(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin()
    await portal.linked()
    fact = await stored(portal, "sleep", "1000")
    while not list((tmp_path / "n1" / "kept").rglob("seal")):
        await asyncio.sleep(0.01)
    (kept,) = (tmp_path / "n1" / "kept").rglob("life.json")
    kept.write_text("rubbish")
    assert (await back_on_its_node(portal, fact.manifest)).state is State.RUNNING


async def test_a_kept_image_that_cannot_be_restored_from_is_fetched_anew(
    portal: Portal, begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin()
    await portal.linked()
    fact = await stored(portal, "sleep", "1000")
    restore = FakeDriver.restore

    def broken(driver: FakeDriver, task: Task, images: Path) -> None:
        if "kept" in images.parts:
            raise DriverError("restore-failed", "It is not what it seems.")
        restore(driver, task, images)

    monkeypatch.setattr(FakeDriver, "restore", broken)
    assert (await back_on_its_node(portal, fact.manifest)).state is State.RUNNING


async def test_nothing_is_kept_where_nothing_may_be(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin(kept_bytes=0)
    await portal.linked()
    fact = await stored(portal, "sleep", "1000")
    assert (await back_on_its_node(portal, fact.manifest)).state is State.RUNNING
    assert not (tmp_path / "n1" / "kept").exists()


async def test_a_stored_replica_runs_on_when_it_is_wanted_again(
    portal: Portal, begin: Begin
) -> None:
    begin()
    await portal.linked()
    await stored(portal, "forever")
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)


async def test_a_periodic_checkpoint_is_stored_while_it_runs_on(
    portal: Portal, begin: Begin
) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)
    for number in (1, 2):
        await portal.want(wish(1, "forever", want=Want.FROZEN, run_on=True))
        await portal.fact(State.FROZEN)
        await portal.want(wish(1, "forever", want=Want.STORED, run_on=True, checkpoint=number))
        fact = await portal.stored(number)
        assert fact.state is State.RUNNING
        assert fact.manifest
        assert {"dump", "capture", "store", "resume"} <= fact.phases.keys()
        await portal.want(wish(1, "forever"))


async def test_a_failed_dump_leaves_it_frozen_and_unharmed(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    command = "undumpable"
    await portal.want(wish(1, command))
    await portal.fact(State.RUNNING)
    await portal.want(wish(1, command, want=Want.STORED, checkpoint=1))
    await portal.until(lambda: portal.facts[1, 0, 1].error)
    fact = portal.facts[1, 0, 1]
    assert (fact.state, fact.error, fact.checkpoint) == (State.FROZEN, "dump-failed", 0)
    await portal.want(wish(1, command))
    assert (await portal.fact(State.RUNNING)).error == ""


async def test_it_is_stored_ahead_while_others_are_yet_to_freeze(
    portal: Portal, begin: Begin
) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)
    await portal.want(wish(1, "forever", want=Want.FROZEN, checkpoint=1))
    ahead = await portal.fact(State.STORED)
    assert (ahead.checkpoint, ahead.error) == (1, "")
    await portal.want(wish(1, "forever", want=Want.STORED, checkpoint=1))
    stored = await portal.fact(State.STORED)
    assert stored.manifest == ahead.manifest
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)


async def test_what_failed_ahead_is_told_until_something_else_is_wanted(
    portal: Portal, begin: Begin
) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "undumpable"))
    await portal.fact(State.RUNNING)
    await portal.want(wish(1, "undumpable", want=Want.FROZEN, checkpoint=1))
    await portal.until(lambda: portal.facts[1, 0, 1].error)
    heard = len(portal.history)
    await portal.want(wish(1, "undumpable", want=Want.STORED, checkpoint=1))
    await portal.until(lambda: len(portal.history) > heard)
    assert portal.facts[1, 0, 1].error == "dump-failed"
    await portal.want(wish(1, "undumpable"))
    assert (await portal.fact(State.RUNNING)).error == ""


async def test_a_store_that_fails_leaves_it_frozen_and_unharmed(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin(store=str(tmp_path / "file-in-the-way" / "store"))
    (tmp_path / "file-in-the-way").write_text("")
    await portal.linked()
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)
    await portal.want(wish(1, "forever", want=Want.STORED, checkpoint=1))
    await portal.until(lambda: portal.facts[1, 0, 1].error)
    assert portal.facts[1, 0, 1].state is State.FROZEN
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)


async def test_a_missing_image_fails_with_its_id(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, image=Image(manifest="ab" * 32)))
    failed = await portal.fact(State.FAILED)
    assert failed.error == "image-damaged"


async def test_a_store_that_is_away_for_a_moment_fails_no_restore(
    portal: Portal, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever", want=Want.STORED, checkpoint=1))
    image = Image(manifest=(await portal.stored(1)).manifest)
    away = Away(monkeypatch, acts, "bring")
    await portal.want(wish(1, image=image, epoch=2))
    while away.asked < 2:
        await asyncio.sleep(0.01)
    away.back()
    await portal.fact(State.RUNNING, epoch=2)
    assert all(not fact.error for fact in portal.history if fact.epoch == 2)


async def test_a_store_that_stays_away_is_told(
    portal: Portal, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(replica.PATIENCE_S, Act.RESTORE, 0.0)
    Away(monkeypatch, acts, "bring")
    begin()
    await portal.linked()
    await portal.want(wish(1, image=Image(manifest="ab" * 32)))
    assert (await portal.fact(State.FAILED)).error == "store-unreachable"


async def test_outputs_wait_for_the_store_to_come_back(
    portal: Portal, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(monkeypatch, acts, "store_tree")
    begin(driver="process")
    await portal.linked()
    await portal.want(wish(1, "true"))
    await portal.fact(State.EXITED)
    while away.asked < 2:
        await asyncio.sleep(0.01)
    assert not portal.facts[1, 0, 1].error, "told of an error, the portal would end it"
    away.back()
    await portal.until(lambda: portal.facts[1, 0, 1].outputs)


class Away:
    """A store that does not answer until it is ``back``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> None:
        self.asked = 0
        self.back = partial(monkeypatch.setattr, module, name, getattr(module, name))
        monkeypatch.setattr(module, name, self._refuse)

    def _refuse(self, *_: object) -> None:
        self.asked += 1
        raise StoreUnreachableError("The store is away.")


async def test_the_cut_can_be_asked_for_before_it_runs(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever", want=Want.FROZEN))
    await portal.fact(State.FROZEN)


async def test_a_parked_replica_goes_on_when_the_agent_is_back(
    portal: Portal, begin: Begin
) -> None:
    first = begin(on_stop="park")
    await portal.linked()
    await portal.want(wish(1, "sleep", "1000"))
    started = await portal.fact(State.RUNNING)
    await first.stop()
    assert first.agent.node.driver.leftovers() == []
    begin(on_stop="park")
    await portal.linked(times=2)
    fact = await portal.fact(State.RUNNING)
    assert fact.started_at > started.started_at
    assert "restore" in fact.phases


async def test_what_cannot_be_parked_is_ended_and_says_so(portal: Portal, begin: Begin) -> None:
    first = begin(on_stop="park", driver="process")
    await portal.linked()
    await portal.want(wish(1, "sleep", "1000"))
    await portal.fact(State.RUNNING)
    await first.stop()
    assert first.agent.node.driver.leftovers() == []
    begin(on_stop="park", driver="process")
    failed = await portal.fact(State.FAILED)
    assert failed.error == "agent-stopped"


async def test_a_parked_replica_that_is_not_wanted_any_more_is_removed(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    first = begin(on_stop="park")
    await portal.linked()
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)
    await first.stop()
    await portal.want()
    begin()
    await portal.until(lambda: portal.history[-1].state is State.ABSENT)
    assert not (tmp_path / "n1" / "replicas" / "j1-r0-e1").exists()
    shutil.rmtree(tmp_path / "store", ignore_errors=True)
