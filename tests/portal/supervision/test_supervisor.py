"""Parts are started, restarted when they die, and stopped with everything they began."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from portal.supervision.parts import Part
from portal.supervision.supervisor import Supervisor
from tests.product import wait_for

pytestmark = pytest.mark.slow
SLEEPER = "import time; print('here', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPER!r}])"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str]) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path, tmp_path / "log", said.append)
    yield made
    made.stop()


def part(code: str, name: str = "sleeper", **fields: float) -> Part:
    return Part(name=name, command=(sys.executable, "-c", code), **fields)  # type: ignore[arg-type]


def pid(supervisor: Supervisor, name: str = "sleeper") -> int:
    found = supervisor.children[name].pid
    assert found is not None
    return found


def printed(tmp_path: Path, name: str = "sleeper") -> int:
    log = tmp_path / "log" / f"{name}.log"
    return log.read_text().count("here") if log.exists() else 0


def test_a_part_that_dies_is_started_again(
    supervisor: Supervisor, said: list[str], tmp_path: Path
) -> None:
    supervisor.start(part(SLEEPER))
    wait_for(lambda: printed(tmp_path) == 1, "the first start")
    first = pid(supervisor)
    os.kill(first, signal.SIGKILL)

    def look() -> bool:
        supervisor.look()
        return printed(tmp_path) == 2

    wait_for(look, "the second start")
    assert pid(supervisor) != first
    assert said == ["sleeper ended with status -9; starting it again"]


def test_a_part_that_cannot_live_is_started_ever_less_often(supervisor: Supervisor) -> None:
    supervisor.start(part("raise SystemExit(3)"))
    waits = []

    def look() -> bool:
        before = supervisor.children["sleeper"].wait_s
        supervisor.look()
        after = supervisor.children["sleeper"].wait_s
        if after != before:
            waits.append(after)
        return len(waits) == 3

    wait_for(look, "three ends")
    assert waits == sorted(waits) and waits[0] > 0


def test_stopping_ends_whole_groups_and_the_stubborn(
    supervisor: Supervisor, said: list[str], tmp_path: Path
) -> None:
    supervisor.start(part(PARENT, "family"))
    supervisor.start(part(STUBBORN, "stubborn", grace_s=0.3))
    wait_for(lambda: printed(tmp_path, "family") and printed(tmp_path, "stubborn"), "both")
    family = psutil.Process(pid(supervisor, "family"))
    everyone = [family, *family.children(), psutil.Process(pid(supervisor, "stubborn"))]
    assert len(everyone) == 3
    supervisor.stop()
    wait_for(
        lambda: not any(p.is_running() and p.status() != "zombie" for p in everyone), "all to end"
    )
    assert said == ["stubborn did not stop within its time and was killed"]


def test_parts_that_others_stand_on_stop_last(supervisor: Supervisor, tmp_path: Path) -> None:
    told = (
        "import signal, sys, time, pathlib\n"
        "def end(*_):\n"
        "    with open('ended', 'a') as f: f.write(sys.argv[1] + ' ')\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('here', flush=True); time.sleep(600)"
    )
    for name, stops in (("broker", 2), ("agent", 0), ("portal", 1)):
        command = (sys.executable, "-c", told, name)
        supervisor.start(Part(name=name, command=command, stops=stops))
        wait_for(lambda name=name: printed(tmp_path, name), name)  # type: ignore[misc]
    supervisor.stop()
    assert (tmp_path / "ended").read_text().split() == ["agent", "portal", "broker"]


def test_a_part_does_not_inherit_what_is_hidden_from_it(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEPOOL_SECRET_KEY", "shh")
    code = "import os; print('here', os.environ.get('TIDEPOOL_SECRET_KEY'), flush=True)"
    supervisor.start(
        Part(name="agent", command=(sys.executable, "-c", code), hidden=("TIDEPOOL_SECRET_KEY",))
    )
    wait_for(lambda: printed(tmp_path, "agent"), "the agent")
    assert "here None" in (tmp_path / "log" / "agent.log").read_text()
