"""Parts of a supervisor that was killed: the kernel tells them to end, and a start waits for it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil

PATIENCE_S = 15.0
"""An agent that parks its replicas takes longest; what is left then is killed."""


def await_end(home: Path, say: Callable[[str], None], patience_s: float = PATIENCE_S) -> None:
    """Return once nothing of this home runs that an earlier supervisor has started."""
    left = [process for pid in _noted(home) if (process := _part(pid, home)) is not None]
    if not left:
        return
    say("Waiting for what an earlier start has left to end")
    _, stubborn = psutil.wait_procs(left, timeout=patience_s)
    for process in stubborn:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # each part leads a group of its own
    psutil.wait_procs(stubborn, timeout=patience_s)


def _noted(home: Path) -> list[int]:
    """Process ids that the last supervisor wrote down."""
    try:
        told = json.loads((home / "log" / "parts.json").read_text())
        return [int(pid) for pid in told.values()]
    except (OSError, ValueError, AttributeError):
        return []


def _part(pid: int, home: Path) -> psutil.Process | None:
    """The process, if it is one of this home's and no other that has its number now."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        ours = process.environ().get("TIDEPOOL_HOME") == str(home)
        if ours and process.status() != psutil.STATUS_ZOMBIE and os.getpgid(pid) == pid:
            return process
    return None
