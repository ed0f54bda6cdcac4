"""Waiting for a task's end: by the kernel's word where there is a process, else by looking."""

from __future__ import annotations

import asyncio
import contextlib
import os

from agents.drivers.base import Driver, Task
from agents.node import thread

LOOK_S = (0.02, 0.25)


async def until_ended(driver: Driver, task: Task) -> None:
    """Return once the task neither runs nor stands frozen."""
    pid = await thread(driver.pid, task)
    if pid is not None:
        await _until_exit(pid)
    await _look(driver, task)


async def _until_exit(pid: int) -> None:
    """Wait for the end of a process that need not be ours."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def _look(driver: Driver, task: Task) -> None:
    delay, most = LOOK_S
    while await _alive(driver, task):
        await asyncio.sleep(delay)
        delay = min(most, delay * 1.5)


async def _alive(driver: Driver, task: Task) -> bool:
    with contextlib.suppress(OSError):
        return (await thread(driver.inspect, task)).state in ("running", "frozen")
    return True
