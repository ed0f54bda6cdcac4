"""The real product in a home of its own, for stories, browser tests and benchmarks."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.processes import with_parent

ROOT = Path(__file__).resolve().parent.parent
UP_WITHIN_S = 240.0
ACCOUNT = re.compile(r"^\W*([a-z][\w.-]*)\W+?\s([\w-]{10,})\W*$")
PARTS = ("broker", "portal", "worker-cycle", "worker-work", "beat", "node-a", "node-b")


class Product:
    """``manage.py up`` and what it said. A context manager: leaving it stops everything."""

    def __init__(self, home: Path, environment: dict[str, str] | None = None) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.accounts: dict[str, str] = {}
        """Passwords by name, as the first start printed them."""
        self.said: list[str] = []
        self.command: tuple[str, ...] = (str(ROOT / "manage.py"), "up")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TIDEPOOL_", "DJANGO_"))}
        self.environment = {
            **kept,
            "TIDEPOOL_HOME": str(home),
            "TIDEPOOL_PORT": str(self.port),
            "TIDEPOOL_NODE_PREFIX": os.environ.get(
                "TIDEPOOL_NODE_PREFIX", str(ROOT / ".tidepool" / "node")
            ),
            "COLUMNS": "160",
            **(environment or {}),
        }
        self.process: subprocess.Popen[str] | None = None
        self._tokens: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it is up; raises ``RuntimeError`` with what it said."""
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", *self.command],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=with_parent(signal.SIGINT),
        )
        up = threading.Event()
        threading.Thread(target=self._listen, args=(self.process, up), daemon=True).start()
        if not up.wait(UP_WITHIN_S) or self.process.poll() is not None:
            self.stop()
            raise RuntimeError("The product did not come up:\n" + "\n".join(self.said[-60:]))

    def stop(self) -> int:
        """Stop it as Ctrl-C does and answer its exit status."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.process = None

    def pid(self, part: str) -> int:
        """Answer the process id of a part, e.g. ``portal`` or ``node-a``."""
        running = json.loads((self.home / "log" / "parts.json").read_text())
        return int(running[part])

    def kill(self, part: str) -> None:
        """End a part without warning, and wait until another process has taken its place."""
        old = self.pid(part)
        os.kill(old, signal.SIGKILL)
        wait_for(lambda: self.pid(part) != old, f"{part} to be started again", 30)

    def healthy(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/healthz", timeout=10).status_code == 200
        return False

    def manage(self, *words: str) -> str:
        """Run a management command in this home and answer what it printed."""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(ROOT / "manage.py"), *words],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)} failed:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def token(self, user: str) -> str:
        """Answer an access token that acts for a user."""
        if user not in self._tokens:
            name = f"tests {os.getpid()} {time.time_ns()}"
            self._tokens[user] = self.manage("token", user, "--name", name, "--days", "1").strip()
        return self._tokens[user]

    def client(self, user: str) -> httpx.Client:
        """Answer an API client that acts for a user; close it."""
        return httpx.Client(
            base_url=f"{self.url}/api/v1/",
            headers={"Authorization": f"Bearer {self.token(user)}"},
            timeout=60,
        )

    def log(self, part: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.home / "log" / f"{part}.log").read_text(errors="replace")
        return ""

    def last_words(self, lines: int = 25) -> str:
        """The last lines of what it said and of each part's log."""
        logs = sorted((self.home / "log").glob("*.log"))
        told = {"said": self.said} | {
            path.stem: path.read_text(errors="replace").splitlines() for path in logs
        }
        return "\n".join(
            f"[{name}] {line[:200]}"
            for name, words in told.items()
            for line in words[-lines:]
            if "no link to the portal" not in line and line.strip()
        )

    def _listen(self, process: subprocess.Popen[str], up: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self.said.append(line.rstrip())
                account = ACCOUNT.match(line)
                if account and not up.is_set():
                    self.accounts.setdefault(account[1], account[2])
                if "Ctrl-C stops everything" in line:
                    up.set()
        up.set()


def free_port() -> int:
    """Answer a port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], Any], what: str, within_s: float = 60.0) -> Any:
    """Ask until the answer is true and give it back; ``AssertionError`` says what is not."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError, OSError, ValueError, KeyError):
            answer = condition()
            if answer:
                return answer
        time.sleep(0.05)
    raise AssertionError(f"Waited {within_s:.0f} s in vain for {what}")
