"""A replica is moved while agents are killed: nothing is lost, nothing runs twice."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from agents.protocol import Desired, Image, State, Want
from agents.toolchain import find
from tests.agents.machine import Machine
from tests.agents.portal import Portal, wish

pytestmark = [pytest.mark.asyncio, pytest.mark.criu, pytest.mark.slow]

REPOSITORY = Path(__file__).parents[2]
PREFIX = Path(os.environ.get("TIDEPOOL_NODE_PREFIX", REPOSITORY / ".tidepool" / "node"))
COUNT = """
import time
memory, i = bytearray(10 << 20), 0
while True:
    i += 1
    print(i, flush=True)
    time.sleep(0.02)
"""
ROUNDS = 4


@dataclass
class Side:
    """One of the two nodes, with its portal."""

    portal: Portal
    machine: Machine


@pytest_asyncio.fixture
async def sides(tmp_path: Path) -> AsyncIterator[list[Side]]:
    tools = find(PREFIX)
    if os.getuid() != 0 or not tools.complete:
        pytest.skip("; ".join(tools.missing) or "needs root")
    async with Portal() as one, Portal() as other:
        sides = [
            Side(portal, Machine(portal, tmp_path, node=node, driver="container", prefix=PREFIX))
            for portal, node in ((one, "n1"), (other, "n2"))
        ]
        await asyncio.gather(*(side.machine.link() for side in sides))
        yield sides
        for side in sides:
            await side.machine.clear()


async def strike(machine: Machine, after_s: float) -> None:
    """Kill an agent at some moment, and start it again."""
    await asyncio.sleep(after_s)
    await machine.kill()
    await machine.link()


async def move(here: Side, there: Side, current: Desired, number: int) -> Desired:
    """Take the replica from one node to the other, as a control plane does."""
    epoch = current.epoch
    await here.portal.want(msgspec.structs.replace(current, want=Want.FROZEN))
    await here.portal.fact(State.FROZEN, epoch=epoch)
    stored = msgspec.structs.replace(current, want=Want.STORED, checkpoint=number)
    await here.portal.want(stored)
    fact = await here.portal.stored(number, epoch)
    if fact.error:
        await here.portal.want(current)
        await here.portal.fact(State.RUNNING, epoch=epoch)
        return current
    await here.portal.want()
    there.portal.output = dict(here.portal.output)
    image = Image(manifest=fact.manifest)
    output_from = len(there.portal.output[1, 0])
    moved = wish(1, epoch=epoch + 1, image=image, output_from=output_from, devices=["cpu0"])
    await there.portal.want(moved)
    await there.portal.fact(State.RUNNING, epoch=epoch + 1)
    return moved


async def grown(portal: Portal, by: int) -> None:
    """Wait until it has printed so many bytes more."""
    before = len(portal.output.get((1, 0), b""))
    await portal.until(lambda: len(portal.output.get((1, 0), b"")) > before + by)


async def test_moves_survive_the_death_of_agents(sides: list[Side]) -> None:
    chance = random.Random(5)
    here, there = sides
    current = wish(1, "python3", "-c", COUNT, devices=["cpu0"])
    await here.portal.want(current)
    for number in range(1, ROUNDS + 1):
        await grown(here.portal, 20)
        victim = chance.choice([here, there])
        striking = asyncio.create_task(strike(victim.machine, chance.uniform(0.0, 1.2)))
        epoch = current.epoch
        current = await move(here, there, current, number)
        await striking
        if current.epoch > epoch:
            here, there = there, here
        await here.portal.fact(State.RUNNING, epoch=current.epoch)
    await grown(here.portal, 50)
    steps = here.portal.output[1, 0].split()[:-1]
    assert steps == [b"%d" % step for step in range(1, len(steps) + 1)]
    await here.portal.want()
    await here.portal.until(lambda: here.portal.history[-1].state is State.ABSENT)
    async with asyncio.timeout(60):
        while [key for side in sides for key in await side.machine.leftovers()]:
            await asyncio.sleep(0.05)
