"""What is frozen can be dumped."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.drivers.cgroups import Cgroups

pytestmark = [pytest.mark.criu, pytest.mark.slow]


@pytest.fixture
def group() -> Iterator[Cgroups]:
    cgroups = Cgroups(f"tidepool-test-{uuid.uuid4().hex[:8]}")
    if not cgroups.able:
        pytest.skip(cgroups.reason)
    cgroups.make("busy", cpus=0, cpuset="", memory=0, pids=0)
    yield cgroups
    cgroups.remove("busy")
    cgroups.close()


def test_nobody_is_frozen_while_a_child_of_theirs_has_yet_to_begin(group: Cgroups) -> None:
    """A parent in vfork cannot be stopped by a debugger until its child has called execve."""
    busy = subprocess.Popen(["/bin/sh", "-c", "read line; while :; do /bin/true; done"],
                            stdin=subprocess.PIPE)  # fmt: skip
    group.join("busy", busy.pid)
    assert busy.stdin is not None
    busy.stdin.write(b"go\n")
    busy.stdin.close()
    try:
        for _ in range(60):
            assert group.freeze("busy", frozen=True)
            assert "kernel_clone" not in sleeps(group)
            group.freeze("busy", frozen=False)
            time.sleep(0.003)
    finally:
        group.freeze("busy", frozen=False)
        busy.kill()
        busy.wait()


def sleeps(group: Cgroups) -> set[str]:
    """Where in the kernel the processes of the group sleep."""
    return {Path(f"/proc/{pid}/wchan").read_text() for pid in group.processes("busy")}
