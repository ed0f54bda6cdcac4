"""What the keeper of a container has written down, as the driver reads it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from agents.containers import keeper
from agents.containers.runc import Command

SCRIPT = keeper.__file__
UNKNOWN = 255
"""Exit code of a container whose keeper was killed before it could see the end."""
ANSWER_S = 600.0


class Keeping:
    """The keeper of the container in ``bundle``, whichever agent started it."""

    def __init__(self, bundle: Path) -> None:
        self._bundle = bundle

    def run(self, command: Command, output: Path) -> str:
        """Have a new keeper run the command. Returns why it failed, or nothing."""
        words = [sys.executable, "-I", "-S", "-E", SCRIPT, str(self._bundle), str(output)]
        log = self._bundle / "keeper.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [*words, *command.words],
                env=command.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd="/",
            )
        try:
            said = process.communicate(timeout=ANSWER_S)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            self._kill()
            return f"it did not finish within {ANSWER_S:.0f} s"
        if said.startswith("started "):
            return ""
        return said.removeprefix("failed ") or log.read_text().strip() or "its keeper was killed"

    def begun(self, timeout_s: float = ANSWER_S) -> bool:
        """Whether the container was started; waits for a keeper that is about to."""
        end = time.monotonic() + timeout_s
        while not self.recorded() and self.watched() and time.monotonic() < end:
            time.sleep(0.005)
        return self.recorded()

    def recorded(self) -> bool:
        """Whether the container was started at some time, running or not."""
        return (self._bundle / "started").exists()

    def watched(self) -> bool:
        """Whether the keeper lives: it holds a lock all its life."""
        try:
            with (self._bundle / "keeper").open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def pid(self) -> int:
        """The container's first process, by the node's count; 0 when there is none."""
        return self._recorded()[0]

    def alive(self) -> bool:
        """Whether the first process is there and not about to be gone."""
        pid, started = self._recorded()
        stat = _stat(pid)
        return bool(stat) and stat[0] not in "ZX" and int(stat[19]) == started

    def exit_code(self) -> int | None:
        """How it ended; ``None`` while it has not, or its keeper still collects the output."""
        with contextlib.suppress(FileNotFoundError):
            return int((self._bundle / "exit").read_text())
        if not self.recorded() or self.alive() or self.watched():
            return None
        # Once more: the keeper may have ended between the two looks.
        with contextlib.suppress(FileNotFoundError):
            return int((self._bundle / "exit").read_text())
        return UNKNOWN

    def deaf(self) -> bool:
        """Whether the first process handles no SIGTERM; the kernel then keeps it from PID 1."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.pid()}/status").read_text().splitlines():
                if line.startswith("SigCgt:"):
                    return not int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1
        return False

    def wait(self, timeout_s: float) -> None:
        """Wait until the keeper is gone; kill it when it does not go by itself."""
        end = time.monotonic() + timeout_s
        while self.watched():
            if time.monotonic() > end:
                self._kill()
            time.sleep(0.002)

    def _kill(self) -> None:
        """Kill the keeper and the runc that it waits for: it leads a session of its own."""
        with contextlib.suppress(OSError, ValueError):
            os.killpg(int((self._bundle / "keeper").read_text()), signal.SIGKILL)

    def _recorded(self) -> tuple[int, int]:
        try:
            pid, started = (self._bundle / "started").read_text().split()
        except FileNotFoundError:
            return 0, 0
        return int(pid), int(started)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, state first."""
    if pid == 0:
        return []
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
