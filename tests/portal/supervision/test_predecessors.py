"""What a killed supervisor has left is waited for, then ended; others' processes are let be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from portal.supervision.predecessors import await_end

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)"
Start = Callable[[Path, str], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process of a home that leads a group, and wait until it is ready."""
    running = []

    def begin(home: Path, then: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", f"{DEAF}; {then}"],
            env=os.environ | {"TIDEPOOL_HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout)):
            pipe.close()


def note(home: Path, **parts: int) -> None:
    (home / "log").mkdir(parents=True)
    (home / "log" / "parts.json").write_text(json.dumps(parts))


def test_one_that_does_not_end_is_killed_and_a_strangers_is_not(
    tmp_path: Path, start: Start
) -> None:
    ours = start(tmp_path, "time.sleep(600)")
    theirs = start(tmp_path / "other", "time.sleep(600)")
    note(tmp_path, agent=ours.pid, portal=theirs.pid)
    said: list[str] = []
    await_end(tmp_path, said.append, patience_s=0.05)
    assert not psutil.pid_exists(ours.pid)
    assert theirs.poll() is None
    assert len(said) == 1


def test_one_that_is_ending_is_waited_for(tmp_path: Path, start: Start) -> None:
    ending = start(tmp_path, "import sys; sys.stdin.read()")
    note(tmp_path, agent=ending.pid)
    assert ending.stdin is not None
    ending.stdin.close()
    await_end(tmp_path, lambda _: None, patience_s=60)
    assert not psutil.pid_exists(ending.pid)


@pytest.mark.parametrize("told", ["", "[]", "{", '{"portal": 4194305}'])
def test_without_a_note_or_with_a_damaged_one_it_goes_on(tmp_path: Path, told: str) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "parts.json").write_text(told)
    said: list[str] = []
    await_end(tmp_path, said.append)
    assert said == []
