"""A dump belongs to its container and not to the agent that began it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.containers import runc
from agents.containers.runc import Runc
from agents.toolchain import Toolchain
from tests.product import wait_for

PROGRAM = """#!/bin/sh
cut -d' ' -f6 /proc/$$/stat > "{folder}/session"
until [ -e "{folder}/go" ]; do sleep 0.01; done
"""


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runc:
    """A runc that says in which session it is and waits for the file ``go``."""
    program = tmp_path / "runc"
    program.write_text(PROGRAM.format(folder=tmp_path))
    program.chmod(0o755)
    monkeypatch.setattr(runc, "_is_tmpfs", lambda _: True)
    monkeypatch.setattr(runc, "_has_capability", lambda _: True)
    tools = Toolchain(runc=program, criu=program, path=os.environ["PATH"])
    return Runc(tools, tmp_path)


def begun(verb: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=verb, daemon=True)
    thread.start()
    return thread


def test_a_dump_is_in_a_session_of_its_own_and_others_wait_for_its_end(
    played: Runc, tmp_path: Path
) -> None:
    assert not played.dumping(tmp_path)
    played.await_dump(tmp_path)
    dump = begun(lambda: played.checkpoint("j1-r0-e1", tmp_path, tmp_path / "images", 0))
    session = wait_for(lambda: (tmp_path / "session").read_text().strip(), "the dump to begin")
    assert int(session) != os.getsid(0), "whoever ends the agent's group must not end a dump"
    assert played.dumping(tmp_path)
    other = begun(lambda: played.await_dump(tmp_path))
    assert other.is_alive()
    (tmp_path / "go").touch()
    dump.join(60)
    other.join(60)
    assert not dump.is_alive()
    assert not other.is_alive()
    assert not played.dumping(tmp_path)
