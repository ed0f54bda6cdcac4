"""An image comes ahead of its replica; whatever goes wrong with that is nobody's harm."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from agents.protocol import Image, Prefetch, State, Want
from tests.agents.conftest import Begin
from tests.agents.machine import Machine
from tests.agents.portal import Portal, wish

pytestmark = pytest.mark.asyncio


async def stored(portal: Portal) -> str:
    """Run a replica on a node, store it, and answer its manifest."""
    await portal.want(wish(1, "sleep", "1000", want=Want.STORED, checkpoint=1))
    return (await portal.fact(State.STORED)).manifest


def hint(manifest: str) -> Prefetch:
    return Prefetch(job=1, rank=0, manifest=manifest)


def kept(folder: Path, node: str) -> list[str]:
    """Manifests of the images of job 1 that a node keeps."""
    return sorted(path.parent.name for path in (folder / node / "kept").glob("j1-r0/*/seal"))


async def test_what_was_fetched_ahead_is_not_fetched_again(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin(node="n1")
    await portal.linked()
    manifest = await stored(portal)
    async with Portal() as other:
        begin(other, node="n2")
        await other.linked()
        await other.hint(hint(manifest))
        await other.until(lambda: other.prefetched == [manifest])
        assert kept(tmp_path, "n2") == [manifest]
        shutil.rmtree(tmp_path / "store" / "p")
        other.hints = []
        await other.want(wish(1, epoch=2, image=Image(manifest=manifest)))
        await other.fact(State.RUNNING, epoch=2)
        await other.until(lambda: other.prefetched == [])


async def test_what_cannot_be_fetched_holds_nobody_up(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever"))
    await portal.hint(hint("ab" * 32), Prefetch(job=2, rank=1, manifest="cd" * 32))
    await portal.until(lambda: portal.prefetched == ["ab" * 32, "cd" * 32])
    assert (await portal.fact(State.RUNNING)).error == ""


async def test_a_full_disk_holds_nobody_up(portal: Portal, begin: Begin, tmp_path: Path) -> None:
    begin(node="n1")
    await portal.linked()
    manifest = await stored(portal)
    async with Portal() as other:
        begin(other, node="n2", kept_bytes=0)
        await other.linked()
        await other.hint(hint(manifest))
        await other.until(lambda: other.prefetched == [manifest])
        assert not list((tmp_path / "n2").glob("ahead/*"))
        await other.want(wish(1, epoch=2, image=Image(manifest=manifest)))
        await other.fact(State.RUNNING, epoch=2)


async def test_hints_that_are_gone_are_told_of_no_more(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    manifest = await stored(portal)
    await portal.hint(hint(manifest))
    await portal.until(lambda: portal.prefetched == [manifest])
    await portal.hint()
    await portal.until(lambda: portal.prefetched == [])
    await portal.hint(hint(manifest))
    await portal.until(lambda: portal.prefetched == [manifest])


async def far_with_image_ready(other: Portal, manifest: str, tmp_path: Path) -> None:
    """Have the other node make an image ready of a replica that is stored to come there."""
    await other.linked()
    await other.hint(Prefetch(job=1, rank=0, manifest=manifest, final=True))
    async with asyncio.timeout(60):
        while not ready(tmp_path):
            await asyncio.sleep(0.01)


def ready(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "n2" / "ahead").glob("*/workspace"))


async def test_what_is_stored_is_made_ready_before_the_cut_counts(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin(node="n1")
    await portal.linked()
    manifest = await stored(portal)
    async with Portal() as other:
        begin(other, node="n2")
        await far_with_image_ready(other, manifest, tmp_path)
        shutil.rmtree(tmp_path / "store")
        other.hints = []
        await other.want(wish(1, epoch=2, image=Image(manifest=manifest)))
        await other.fact(State.RUNNING, epoch=2)
        assert not list((tmp_path / "n2" / "ahead").iterdir())
        assert other.prefetched == []


async def test_what_was_made_ready_goes_when_the_move_is_called_off(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin(node="n1")
    await portal.linked()
    manifest = await stored(portal)
    async with Portal() as other:
        begin(other, node="n2")
        await far_with_image_ready(other, manifest, tmp_path)
        await other.hint()
        async with asyncio.timeout(60):
            while list((tmp_path / "n2" / "ahead").iterdir()):
                await asyncio.sleep(0.01)


async def test_what_leans_on_an_image_that_was_altered_since_is_made_anew(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin(node="n1")
    await portal.linked()
    manifest = await stored(portal)
    async with Portal() as other:
        begin(other, node="n2")
        await other.linked()
        await other.hint(hint(manifest))
        await other.until(lambda: other.prefetched == [manifest])
        await far_with_image_ready(other, manifest, tmp_path)
        (life,) = (tmp_path / "n2" / "kept").rglob("life.json")
        life.write_text("rubbish")
        other.hints = []
        await other.want(wish(1, epoch=2, image=Image(manifest=manifest)))
        await other.fact(State.RUNNING, epoch=2)
        assert not list((tmp_path / "n2" / "ahead").iterdir())


@pytest.mark.slow
async def test_killed_while_it_fetches_ahead_it_takes_the_hint_again(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin(node="n1")
    await portal.linked()
    manifest = await stored(portal)
    async with Portal() as other:
        machine = Machine(other, tmp_path / "far", store=str(tmp_path / "store"))
        try:
            await machine.link()
            state = machine.config.state
            (state / "ahead" / "half").mkdir(parents=True)
            await other.hint(hint(manifest))
            await asyncio.sleep(0)
            await machine.kill()
            await machine.link()
            await other.until(lambda: other.prefetched == [manifest])
            assert list((state / "kept").rglob("seal"))
            assert not list(state.glob("ahead/*"))
        finally:
            await machine.clear()
