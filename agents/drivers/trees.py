"""A process, its descendants and its session, where there is no control group to ask."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import psutil

from agents.drivers.base import Use


def started_at(pid: int) -> int:
    """The kernel's start time of a living process in clock ticks; 0 when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def same_process(pid: int, started: int) -> bool:
    """Whether ``pid`` still is the process that started then: pids are used again."""
    return started != 0 and started_at(pid) == started


class ProcessTree:
    """The keeper's session and its descendants.

    A process that leaves the session *and* whose parent has died escapes; only a control group
    holds those.
    """

    def __init__(self, keeper: int) -> None:
        self.keeper = keeper

    def pids(self) -> list[int]:
        """Living members, the keeper last."""
        found = set()
        with contextlib.suppress(psutil.NoSuchProcess):
            found |= {p.pid for p in psutil.Process(self.keeper).children(recursive=True)}
        for pid in psutil.pids():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(pid) == self.keeper:
                    found.add(pid)
        living = [pid for pid in sorted(found - {self.keeper}) if started_at(pid)]
        return [*living, self.keeper] if started_at(self.keeper) else living

    def stop(self, timeout_s: float = 10.0) -> bool:
        """SIGSTOP all, again until no new one appears; false when some still run."""
        end = time.monotonic() + timeout_s
        # Told first, listed afterwards: whom one that stands still has begun is on the list.
        while not self._signal(signal.SIGSTOP) or not self.stopped():
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def resume(self) -> None:
        """SIGCONT all."""
        self._signal(signal.SIGCONT)

    def stopped(self) -> bool:
        """Whether no member takes another step, and there is one."""
        pids = self.pids()
        return bool(pids) and all(_still(pid) for pid in pids)

    def use(self) -> Use:
        """CPU seconds of the living and of their reaped children, and resident bytes."""
        cpu, memory = 0.0, 0
        for pid in self.pids():
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                times = process.cpu_times()
                cpu += times.user + times.system
                if pid == self.keeper:
                    cpu += times.children_user + times.children_system
                memory += process.memory_info().rss
        return Use(cpu_s=cpu, memory=memory)

    def _signal(self, number: signal.Signals) -> bool:
        """Signal every member; false when there is none."""
        pids = self.pids()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        return bool(pids)


def _still(pid: int) -> bool:
    """Whether a process is stopped, gone, or will be stopped before its next step.

    The last is a parent in vfork: it sleeps in the kernel until its child calls execve, which a
    stopped child does not.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return True
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    state, pending = status["State"][0], int(status["ShdPnd"], 16)
    return state in "Tt" or (state == "D" and bool(pending >> (signal.SIGSTOP - 1) & 1))
