"""A node whose agent is a process of its own, to be killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil

from agents.choice import choose_devices, choose_driver
from agents.node import Node
from tests.agents.conftest import settings
from tests.agents.portal import TOKEN, Portal


class Machine:
    """A node whose agent is a process of its own."""

    def __init__(self, portal: Portal, folder: Path, **more: Any) -> None:
        self.portal = portal
        self.config = settings(portal, folder, **{"driver": "process", **more})
        self.process: asyncio.subprocess.Process | None = None

    async def boot(self) -> None:
        """Start the agent; ``link`` tells when it is there."""
        config = self.config
        environment = {
            **os.environ,
            "TIDEPOOL_PORTAL": config.portal,
            "TIDEPOOL_NODE_TOKEN": TOKEN,
            "TIDEPOOL_NODE": config.node,
            "TIDEPOOL_AGENT_STATE": str(config.state),
            "TIDEPOOL_STORE": config.store,
            "TIDEPOOL_NODE_PREFIX": str(config.prefix),
            "TIDEPOOL_DRIVER": config.driver,
            "TIDEPOOL_DEVICES": "cpu:2",
            "TIDEPOOL_GRACE": "1",
        }
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "agents", env=environment, start_new_session=True
        )

    async def link(self) -> None:
        """Start the agent and wait until it has said hello."""
        hellos = len(self.portal.hellos)
        await self.boot()
        await self.portal.linked(hellos + 1)

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill the agent, and only it."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)
            await self.process.wait()
            self.process = None

    def node(self) -> Node:
        """The agent's own view of the node."""
        config = self.config
        driver, devices = choose_driver(config), choose_devices(config)
        return Node(config=config, driver=driver, devices=devices)

    async def leftovers(self) -> list[str]:
        """What is on the node."""
        return await asyncio.to_thread(self.node().driver.leftovers)

    async def clear(self) -> None:
        """Remove everything that is left."""
        await self.kill()
        for process in psutil.process_iter(["cmdline"]):
            if str(self.config.state) in (process.info["cmdline"] or []):
                process.kill()
        node = self.node()
        for key in await self.leftovers():
            await asyncio.to_thread(node.driver.remove, node.bare_task(key))
        node.driver.close()
