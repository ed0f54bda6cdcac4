"""A portal to talk to, and agents that are ended with all that they run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agents import acts
from agents.agent import Agent
from agents.choice import choose_devices, choose_driver
from agents.config import Config
from agents.node import Node
from tests.agents.portal import TOKEN, Portal


@pytest_asyncio.fixture
async def portal() -> AsyncIterator[Portal]:
    async with Portal() as portal:
        yield portal


def settings(portal: Portal, folder: Path, **more: Any) -> Config:
    """Settings of a test's agent; its nodes share one chunk store."""
    node = more.get("node", "n1")
    values: dict[str, Any] = {
        "portal": portal.url,
        "token": TOKEN,
        "node": node,
        "state": folder / node,
        "store": str(folder / "store"),
        "prefix": folder / "prefix",
        "driver": "fake",
        "devices": "cpu:2",
        "cores": (0, 1),
        "grace_s": 2.0,
        **more,
    }
    return Config(**values)


class Running:
    """An agent in the test's own process."""

    def __init__(self, config: Config) -> None:
        node = Node(config=config, driver=choose_driver(config), devices=choose_devices(config))
        self.agent = Agent(node)
        self.task = asyncio.create_task(self.agent.run())

    async def stop(self) -> None:
        """Tell it to stop, as SIGTERM does."""
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    async def clear(self) -> None:
        """Stop it and remove what it runs."""
        await self.stop()
        await self.agent.close()
        node = self.agent.node
        for key in await asyncio.to_thread(node.driver.leftovers):
            await asyncio.to_thread(node.driver.remove, node.bare_task(key))
        node.driver.close()


Begin = Callable[..., Running]


@pytest.fixture(autouse=True)
def brief_farewells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "LINGER_S", 0.01)


@pytest_asyncio.fixture
async def begin(portal: Portal, tmp_path: Path) -> AsyncIterator[Begin]:
    """Begin an agent with these settings; several by the same node's name follow each other."""
    begun: list[Running] = []

    def begin(at: Portal = portal, **more: Any) -> Running:
        begun.append(Running(settings(at, tmp_path, **more)))
        return begun[-1]

    yield begin
    for running in begun:
        await running.clear()


@pytest.fixture(params=["fake", "process"])
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)
