"""The live cycle's tests once more, on the database of a real fleet."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]


def programs() -> Path | None:
    """The folder of the newest PostgreSQL server on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@pytest.fixture
def server() -> Iterator[str]:
    """Address of a server of our own, on a Unix socket only."""
    bin = programs()
    if bin is None:
        pytest.skip("PostgreSQL is not installed")
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
    options = f"-k {home} -c listen_addresses='' -c fsync=off -c max_connections=50"
    run(bin / "pg_ctl", "-D", data, "-l", home / "log", "-w", "-o", options, "start")
    try:
        yield f"postgres://tidepool@/postgres?host={home}"
    finally:
        run(bin / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(home, ignore_errors=True)


def test_the_live_cycle_on_postgresql(server: str) -> None:
    environment = os.environ | {"TEST_DATABASE_URL": server}
    tests = [str(path) for path in (ROOT / "tests" / "live").glob("test_*.py")]
    tests.remove(str(Path(__file__)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    ran = subprocess.run(
        [*command, *tests], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert " passed" in ran.stdout
