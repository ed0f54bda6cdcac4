"""One running part: in a session of its own, tied to our life, stopped with its group."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

from portal.supervision.logs import open_log
from portal.supervision.parts import Part

FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 10.0
SETTLED_S = 20.0
"""A part that lived this long starts anew without a wait when it dies."""
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _follow_parent() -> None:
    """End with the supervisor, even where that is killed: runs in the child, before exec."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """A part and its present process. Times are seconds on the monotonic clock."""

    def __init__(self, part: Part, folder: Path, logs: Path) -> None:
        self.part = part
        self.folder = folder
        self.logs = logs
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.wait_s = 0.0
        self.due_at = 0.0

    def start(self) -> None:
        environment = {k: v for k, v in os.environ.items() if k not in self.part.hidden}
        environment.update(self.part.environment)
        log = open_log(self.logs, self.part.name)
        try:
            self.process = subprocess.Popen(
                self.part.command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                umask=self.part.umask,
                start_new_session=True,  # Ctrl-C is ours alone, and the group can be ended whole
                preexec_fn=_follow_parent,
            )
        finally:
            os.close(log)
        self.started_at = time.monotonic()
        self.due_at = 0.0

    def died(self) -> int | None:
        """Answer the exit status once, when the process has ended since last asked."""
        if self.process is None or self.process.poll() is None:
            return None
        status = self.process.returncode
        self._end_group()
        self.process = None
        now = time.monotonic()
        settled = now - self.started_at > SETTLED_S
        self.wait_s = 0.0 if settled else min(max(self.wait_s * 2, FIRST_WAIT_S), LONGEST_WAIT_S)
        self.due_at = now + self.wait_s
        return status

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    @property
    def due(self) -> bool:
        """Whether it is down and its wait is over."""
        return self.process is None and time.monotonic() >= self.due_at

    def ask_to_stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def wait_stopped(self, until: float) -> bool:
        """Wait until then, kill what is left of its group; answer whether it went by itself."""
        if self.process is None:
            return True
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            self._end_group()
            self.process.wait()
            self.process = None

    def _end_group(self) -> None:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
