"""``python -m agents``: run this node's agent until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import IO

from agents.agent import Agent
from agents.choice import choose_devices, choose_driver
from agents.config import Config, ConfigError, read_config
from agents.guard import start_guard
from agents.node import Node

THREADS = 32


def main() -> int:
    """Run the agent; 2 when a setting is wrong or another agent owns the state folder."""
    try:
        config = read_config(sys.argv[1:])
        logging.basicConfig(
            level=config.log_level, format="%(asctime)s %(levelname).1s %(name)s: %(message)s"
        )
        logging.getLogger("websockets").setLevel(logging.WARNING)
        lock = take_lock(config)
        node = Node(config=config, driver=choose_driver(config), devices=choose_devices(config))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    os.environ.pop("TIDEPOOL_NODE_TOKEN", None)
    with lock:
        guard = start_guard(config.state)
        try:
            with asyncio.Runner(loop_factory=_loop) as runner:
                runner.run(serve(node))
        finally:
            node.driver.close()
            guard.poll()
    return 0


def take_lock(config: Config) -> IO[str]:
    """Own the state folder while the file is open. Raises ``ConfigError`` if another agent does."""
    config.state.mkdir(parents=True, exist_ok=True)
    lock = (config.state / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise ConfigError(f"Another agent runs with the state folder {config.state}.") from error
    return lock


def _loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def serve(node: Node) -> None:
    """Run the agent until a signal asks it to stop."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="verb"))
    running = asyncio.create_task(Agent(node).run())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await running


if __name__ == "__main__":
    sys.exit(main())
