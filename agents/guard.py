"""A process of its own that freezes the replicas of a node whose lease has run down and whose agent
cannot.

It outlives the agent's ``kill -9``: without it, a node that is cut off while its agent is dead
would go on running ranks that the portal has started elsewhere. Standard library only; started by
path, without site packages.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TARGET = "guard.json"
GUARD_AT = 0.8
"""Part of the lease after which it acts; the agent itself acts before."""
TICK_S = 0.5


def start_guard(state: Path) -> subprocess.Popen[bytes]:
    """Start a guard for the calling agent."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(state), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


def write_target(driver: Any, task: Any) -> None:
    """Leave word beside a replica how to freeze it."""
    if target := driver.freezer(task):
        fresh = task.folder / (TARGET + ".new")
        fresh.write_text(json.dumps(target))
        fresh.replace(task.folder / TARGET)


def watch(state: Path, agent: int) -> None:
    """Look at the lease until the agent is dead and there is nothing left to guard.

    The agent writes the moment of its last contact before it lets anything run again, so a fresh
    lease is never followed by a freeze. A contact made after the agent's death is another agent's,
    which has its own guard.
    """
    last_contact = 0.0
    while True:
        alive = _alive(agent)
        contact, lease = _read(state / "lease")
        if not alive and contact > last_contact > 0:
            return
        if alive:
            last_contact = max(last_contact, contact)
        lapsed = lease > 0 and time.clock_gettime(time.CLOCK_BOOTTIME) > contact + GUARD_AT * lease
        targets = list((state / "replicas").glob(f"*/{TARGET}"))
        if lapsed:
            for target in targets:
                _freeze(target)
        if not alive and (lapsed or not targets):
            return
        time.sleep(min(TICK_S, lease / 20) if lease else TICK_S)


def _alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    return False


def _read(lease: Path) -> tuple[float, float]:
    with contextlib.suppress(OSError, ValueError):
        contact, seconds = (float(word) for word in lease.read_text().split()[:2])
        return contact, seconds
    return 0.0, 0.0


def _freeze(target: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        how = json.loads(target.read_text())
        if "freezer" in how:
            folder = Path(how["freezer"])
            if (folder / "freezer.state").exists():
                (folder / "freezer.state").write_text("FROZEN")
            else:
                (folder / "cgroup.freeze").write_text("1")
        elif "session" in how:
            _stop_session(int(how["session"]))


def _stop_session(session: int) -> None:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session:
                os.kill(int(folder.name), signal.SIGSTOP)


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]))
