"""The guard freezes when the lease is over, and knows when to go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import guard
from agents.drivers.trees import ProcessTree
from agents.fencing import uptime
from tests.agents.contract import until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture
def state(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> Path:
    folder = tmp_path / "replicas" / "j1-r0-e1"
    folder.mkdir(parents=True)
    (folder / guard.TARGET).write_text(json.dumps({"session": str(sleeper.pid)}))
    return tmp_path


def dead_agent() -> int:
    """The pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def lease(state: Path, age_s: float, seconds: float = 10.0) -> None:
    (state / "lease").write_text(f"{uptime() - age_s:.3f} {seconds}\n")


def watching(state: Path, agent: int) -> threading.Thread:
    thread = threading.Thread(target=guard.watch, args=(state, agent), daemon=True)
    thread.start()
    return thread


def test_it_freezes_and_goes_when_agent_and_lease_are_over(
    state: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    lease(state, age_s=60)
    watching(state, dead_agent()).join(timeout=30)
    until(ProcessTree(sleeper.pid).stopped)


def test_it_freezes_for_an_agent_that_hangs(state: Path, sleeper: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen(["sleep", "1000"]) as hanging:
        lease(state, age_s=60)
        thread = watching(state, hanging.pid)
        until(ProcessTree(sleeper.pid).stopped)
        assert thread.is_alive()
        hanging.kill()
    thread.join(timeout=30)
    assert not thread.is_alive()


def test_within_the_lease_it_leaves_things_alone(
    state: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    lease(state, age_s=0, seconds=1.0)
    thread = watching(state, os.getpid())
    for _ in range(20):
        lease(state, age_s=0, seconds=1.0)
        thread.join(timeout=0.02)
    assert not ProcessTree(sleeper.pid).stopped()
    (state / "replicas" / "j1-r0-e1" / guard.TARGET).unlink()
    assert thread.is_alive(), "its agent lives"


def test_it_goes_when_another_agent_has_taken_over(
    state: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    with subprocess.Popen(["sleep", "1000"]) as agent:
        lease(state, age_s=1, seconds=1000.0)
        thread = watching(state, agent.pid)
        thread.join(timeout=0.2)
        agent.kill()
    thread.join(timeout=0.7)
    assert thread.is_alive(), "there is still something to guard"
    lease(state, age_s=0, seconds=1000.0)
    thread.join(timeout=30)
    assert not thread.is_alive()
    assert not ProcessTree(sleeper.pid).stopped()


def test_with_nothing_to_guard_it_goes_with_its_agent(tmp_path: Path) -> None:
    thread = watching(tmp_path, dead_agent())
    thread.join(timeout=30)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("present", "file", "word"),
    [("freezer.state", "freezer.state", "FROZEN"), ("cgroup.procs", "cgroup.freeze", "1")],
)
def test_it_knows_both_kinds_of_freezer(tmp_path: Path, present: str, file: str, word: str) -> None:
    group = tmp_path / "group"
    group.mkdir()
    (group / present).write_text("")
    folder = tmp_path / "replicas" / "j1-r0-e1"
    folder.mkdir(parents=True)
    (folder / guard.TARGET).write_text(json.dumps({"freezer": str(group)}))
    lease(tmp_path, age_s=60)
    watching(tmp_path, dead_agent()).join(timeout=30)
    assert (group / file).read_text() == word


def test_a_damaged_target_stops_nothing_else(state: Path, sleeper: subprocess.Popen[bytes]) -> None:
    other = state / "replicas" / "a-first"
    other.mkdir()
    (other / guard.TARGET).write_text("{")
    lease(state, age_s=60)
    watching(state, dead_agent()).join(timeout=30)
    until(ProcessTree(sleeper.pid).stopped)
