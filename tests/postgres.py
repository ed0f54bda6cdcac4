"""A PostgreSQL server of our own, on a Unix socket only, gone when it is done with."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import with_parent
from tests.product import wait_for


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
    who: dict[str, Any] = {"user": user, "group": user, "extra_groups": []}
    home = Path(tempfile.mkdtemp(prefix="tp-pg-", dir="/tmp"))
    data = home / "data"
    told = ("listen_addresses=", "fsync=off", "max_connections=50", *settings)
    try:
        if os.getuid() == 0:
            shutil.chown(home, user, user)
        else:
            who = {}
        subprocess.run(
            [bin / "initdb", "-D", data, "-A", "trust", "-U", "tidepool", "--no-sync"],
            check=True, capture_output=True, cwd=home, **who,
        )  # fmt: skip
        words = [bin / "postgres", "-D", data, "-k", home]
        words += [word for setting in told for word in ("-c", setting)]
        with (
            (home / "log").open("w") as log,
            subprocess.Popen(
                words, cwd=home, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=with_parent(signal.SIGQUIT), **who,
            ) as server,
        ):  # fmt: skip
            try:
                wait_for(lambda: _answers(bin, home, server), "PostgreSQL to answer", 120)
                yield f"postgres://tidepool@/postgres?host={home}"
            finally:
                server.send_signal(signal.SIGQUIT)  # at once, without writing anything down
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _answers(bin: Path, home: Path, server: subprocess.Popen[bytes]) -> bool:
    if server.poll() is not None:
        raise RuntimeError("PostgreSQL ended: " + (home / "log").read_text()[-2000:])
    ready = [bin / "pg_isready", "--quiet", "--host", home]
    return subprocess.run(ready, check=False).returncode == 0
