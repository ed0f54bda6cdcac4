"""What must be so before the parts start: one supervisor a home, a free port, static files."""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders

UNUSED_STATIC = ("datasets", "templates", "*redoc*", "widgetbundle.js", "rest_framework")


class RefusedError(Exception):
    """The product cannot be started; the sentence says what to do."""


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Hold the home for this process. Raises ``RefusedError`` when another one does."""
    path = home / "run" / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise RefusedError(
                f"Tidepool is already running in {home} (process {lock.read().strip()}). Stop it "
                "with Ctrl-C there, or set TIDEPOOL_HOME and TIDEPOOL_PORT for a second one."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def claim_port(port: int) -> None:
    """Raise ``RefusedError`` when something listens on the port already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise RefusedError(
                f"Port {port} cannot be used ({error.strerror}). Set TIDEPOOL_PORT to another."
            ) from None


class StaticFiles:
    """Collects, hashes and compresses static files in the background, when they have changed."""

    def __init__(self, root: Path) -> None:
        self.stamp = root / ".stamp"
        self.wanted = _fingerprint()
        self.process: subprocess.Popen[str] | None = None
        current = self.stamp.read_text() if self.stamp.exists() else ""
        if current != self.wanted:
            words = [
                sys.executable,
                str(settings.ROOT / "manage.py"),
                "collectstatic",
                "--no-input",
                "--clear",
            ]
            words += [f"--ignore={pattern}" for pattern in UNUSED_STATIC]
            self.process = subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )

    def wait(self) -> None:
        """Wait until they are there; ``RefusedError`` carries the last line of what went wrong."""
        if self.process is None:
            return
        _, errors = self.process.communicate()
        if self.process.returncode:
            last = errors.strip().splitlines()[-1:] or ["no reason given"]
            raise RefusedError(f"The static files could not be collected: {last[0]}")
        self.stamp.write_text(self.wanted)


def _fingerprint() -> str:
    """Answer a hash over every static file's name, size and time."""
    found = []
    for finder in get_finders():
        for path, storage in finder.list(list(UNUSED_STATIC)):
            seen = Path(storage.path(path)).stat()
            found.append(f"{path} {seen.st_size} {seen.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()
