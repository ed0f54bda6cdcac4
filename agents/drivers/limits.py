"""Resource limits of a plain process where control groups cannot hold it."""

from __future__ import annotations

import contextlib
import os
import resource

import psutil

from agents.drivers.base import Task

OPEN_FILES = 65_536


def limit_process(task: Task, pid: int, *, grouped: bool) -> None:
    """Set the limits of process ``pid`` and of its children to come.

    ``grouped`` says that memory and number of processes are limited by a control group. Otherwise
    memory is limited per process by its data (address space would punish programs that reserve much
    and use little), and the number of processes is limited for the whole user, on top of those that
    exist. Root escapes that one.
    """
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, PermissionError):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    if grouped:
        return
    if task.memory:
        resource.prlimit(pid, resource.RLIMIT_DATA, (task.memory, task.memory))
    if task.pids and os.getuid() != 0:
        limit = _tasks_of_user(os.getuid()) + task.pids
        with contextlib.suppress(ValueError, PermissionError):
            resource.prlimit(pid, resource.RLIMIT_NPROC, (limit, limit))


def _tasks_of_user(uid: int) -> int:
    """Threads count: the kernel's limit does not tell them from processes."""
    count = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.uids().real == uid:
                count += process.num_threads()
    return count
