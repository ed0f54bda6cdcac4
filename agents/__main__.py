"""``python -m agents``: run this node's agent until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import fcntl
import gc
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

THREADS = 64
GUARD_LOOK_S = 2.0
COLLECTIONS = (50_000, 20, 20)
"""After how many new objects, and then how many rounds, Python looks for cycles."""

log = logging.getLogger("tidepool")


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
    # A checkpoint is a great many small objects, which come and go without cycles.
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    with lock:
        runner = asyncio.Runner(loop_factory=_loop)
        runner.run(serve(node))
        logging.shutdown()
        # Not by way of the interpreter's end: it would wait for a worker that clones from afar.
        os._exit(0)


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
    """Run the agent until a signal asks it to stop; a second signal changes nothing."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="verb"))
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    running = asyncio.create_task(Agent(node).run())
    guarding = asyncio.create_task(keep_guard(node))
    stopping = asyncio.create_task(asked.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    for task in (running, stopping, guarding):
        task.cancel()
    results = await asyncio.gather(running, stopping, guarding, return_exceptions=True)
    node.driver.close()
    if isinstance(results[0], Exception):
        raise results[0]


async def keep_guard(node: Node) -> None:
    """Have a guard at all times; it ends by itself after the agent."""
    while True:
        guard = start_guard(node.config.state)
        while guard.poll() is None:
            await asyncio.sleep(GUARD_LOOK_S)
        log.warning("the guard has ended; starting another")


if __name__ == "__main__":
    sys.exit(main())
