"""The live cycle's tests once more, on the database of a real fleet."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import postgres, programs

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server() -> Iterator[str]:
    """Address of a server of our own."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres() as address:
        yield address


def test_the_live_cycle_on_postgresql(server: str) -> None:
    environment = os.environ | {"TEST_DATABASE_URL": server}
    tests = [str(path) for path in (ROOT / "tests" / "live").glob("test_*.py")]
    tests.remove(str(Path(__file__)))
    tests.append(str(ROOT / "tests" / "live" / "late.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    ran = subprocess.run(
        [*command, *tests], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert " passed" in ran.stdout
