"""The link breaks, lies and floods; the agent makes it again and loses nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agents.lifecycle import Stage
from agents.link import BAD_FRAMES
from agents.protocol import DesiredState, State, encode
from tests.agents.conftest import Begin
from tests.agents.portal import PATIENCE_S, Portal, wish

pytestmark = pytest.mark.asyncio


async def test_it_comes_back_after_the_portal_was_away(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)
    await portal.close()
    portal.facts.clear()
    await portal.want(wish(1, "forever"), wish(2, "forever"))
    await portal.open()
    await portal.linked(times=2)
    await portal.fact(State.RUNNING, job=2)
    await portal.fact(State.RUNNING, job=1)


async def test_it_goes_on_asking_where_it_is_refused(portal: Portal, begin: Begin) -> None:
    portal.refusing = True
    begin()
    await asyncio.sleep(0.1)
    portal.refusing = False
    await portal.linked()


async def test_output_has_no_gap_after_a_break(portal: Portal, begin: Begin) -> None:
    begin(driver="process")
    await portal.linked()
    script = "i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i; sleep 0.001; done"
    await portal.want(wish(1, "sh", "-c", script))
    await portal.until(lambda: len(portal.output.get((1, 0), b"")) > 100)
    await portal.close()
    await portal.open()
    whole = b"".join(b"line %d\n" % i for i in range(1, 401))
    await portal.until(lambda: portal.output.get((1, 0)) == whole)


async def test_output_of_a_placement_follows_what_the_portal_has(
    portal: Portal, begin: Begin
) -> None:
    portal.output[1, 0] = b"of the first placement\n"
    begin()
    await portal.linked()
    await portal.want(wish(1, "say", "second", epoch=2, output_from=len(portal.output[1, 0])))
    await portal.until(lambda: portal.output[1, 0].endswith(b"placement\nsecond\n"))


async def test_frames_that_cannot_be_read_are_passed_over(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    for frame in (b"", b"\xc1", b"\x93garbage", "text", encode({"type": "unheard-of"})):
        await portal.send(frame)
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)
    assert len(portal.hellos) == 1


async def test_too_many_of_them_end_the_connection(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    for _ in range(BAD_FRAMES):
        await portal.send(b"\xc1")
    await portal.linked(times=2)


async def test_a_desired_state_that_was_lost_is_noticed(portal: Portal, begin: Begin) -> None:
    portal.lease_s = 1.2
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)
    portal.number += 1
    portal.desired = []
    await portal.linked(times=2)
    await portal.until(lambda: portal.history[-1].state is State.ABSENT)


async def test_an_answer_out_of_order_is_refused(portal: Portal, begin: Begin) -> None:
    portal.greeting = DesiredState(number=1, replicas=[])
    begin()
    await portal.linked(times=2)
    portal.greeting = None
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)


async def test_a_flood_of_output_starves_nothing(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin(driver="process")
    await portal.linked()
    flood = wish(1, "sh", "-c", "yes tidepool | head -c 40000000; echo the end")
    await portal.want(flood)
    await portal.fact(State.RUNNING)
    await portal.want(flood, wish(2, "echo", "quick"))
    await portal.fact(State.EXITED, job=2)
    await portal.fact(State.EXITED, job=1)
    await portal.until(lambda: portal.output[1, 0].endswith(b"the end\n"))
    assert len(portal.output[1, 0]) < 20_000_000
    assert b"tidepool left out" in portal.output[1, 0]


async def test_what_was_printed_while_the_portal_was_away_comes_before_what_became_of_it(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    running = begin(driver="process")
    await portal.linked()
    go, lines = tmp_path / "go", 3000
    script = f"while [ ! -e {go} ]; do sleep 0.01; done; seq {lines}"
    await portal.want(wish(1, "sh", "-c", script))
    await portal.fact(State.RUNNING)
    await portal.close()
    go.touch()
    (replica,) = running.agent.replicas.values()
    async with asyncio.timeout(PATIENCE_S):
        while replica.record.stage is not Stage.EXITED:
            await asyncio.sleep(0.01)
    await portal.open()
    await portal.fact(State.EXITED)
    printed = "".join(f"{number}\n" for number in range(1, lines + 1))
    assert portal.held_at[State.EXITED] == len(printed)
    assert portal.output[1, 0] == printed.encode()
