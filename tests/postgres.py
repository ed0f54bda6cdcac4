"""A PostgreSQL server of our own, on a Unix socket only, gone when it is done with."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """The folder of the newest PostgreSQL server on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@contextmanager
def postgres(*settings: str) -> Iterator[str]:
    """Run a server and answer its address. Raises FileNotFoundError where none is installed.

    ``settings`` are its own, such as ``shared_buffers=256MB``.
    """
    bin = programs()
    if bin is None:
        raise FileNotFoundError("PostgreSQL is not installed")
    # The server refuses to run as root, and needs a folder that its own user can reach.
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    as_user = ["runuser", "-u", user, "--"] if os.getuid() == 0 else []
    home = Path(tempfile.mkdtemp(prefix="tp-pg-", dir="/tmp"))
    if as_user:
        shutil.chown(home, user)
    data = home / "data"

    def run(*words: str | Path) -> None:
        subprocess.run([*as_user, *map(str, words)], check=True, capture_output=True, cwd=home)

    run(bin / "initdb", "-D", data, "-A", "trust", "-U", "tidepool", "--no-sync")
    own = " ".join(f"-c {setting}" for setting in settings)
    options = f"-k {home} -c listen_addresses='' -c fsync=off -c max_connections=50 {own}"
    run(bin / "pg_ctl", "-D", data, "-l", home / "log", "-w", "-o", options, "start")
    try:
        yield f"postgres://tidepool@/postgres?host={home}"
    finally:
        run(bin / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(home, ignore_errors=True)
