"""The toolchain, and drivers that leave nothing behind on the machine."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.drivers.base import Driver, Task
from agents.drivers.cgroups import ROOT
from agents.drivers.container import ContainerDriver
from agents.toolchain import Toolchain, find
from tests.agents.contract import until

REPOSITORY = Path(__file__).parents[3]
MakeDriver = Callable[..., ContainerDriver]
MakeTask = Callable[..., Task]


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """runc and CRIU, from where ``make node`` puts them or from the system."""
    prefix = os.environ.get("TIDEPOOL_NODE_PREFIX", REPOSITORY / ".tidepool" / "node")
    found = find(Path(prefix))
    if os.geteuid() != 0:
        pytest.skip("containers need root")
    if not found.complete:
        pytest.skip("; ".join(found.missing))
    return found


@pytest.fixture(scope="session")
def fleet() -> str:
    """A fleet of this session's own: its bridges are nobody else's."""
    return f"test-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def make_driver(toolchain: Toolchain, fleet: str, tmp_path: Path) -> Iterator[MakeDriver]:
    """Makes drivers; at the end nothing of theirs may be left."""
    made: list[ContainerDriver] = []

    def make(agent: str = "a", **more: Any) -> ContainerDriver:
        state = tmp_path / agent
        made.append(
            ContainerDriver(state=state, toolchain=toolchain, agent=agent, fleet=fleet, **more)
        )
        return made[-1]

    yield make
    for driver in made:
        for key in driver.leftovers():
            folder = tmp_path / "spare"
            driver.remove(blank(key, folder))
        assert driver.leftovers() == []
    remove_groups(fleet)


@pytest.fixture
def driver(make_driver: MakeDriver) -> ContainerDriver:
    return make_driver()


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Makes tasks with a folder; those of one job and rank share it, whatever their epoch."""

    def make(*command: str, job: int = 1, rank: int = 0, epoch: int = 1, **more: Any) -> Task:
        folder = tmp_path / "replicas" / f"j{job}-r{rank}"
        (folder / "workspace").mkdir(parents=True, exist_ok=True)
        values = {"environment": {"OPENBLAS_NUM_THREADS": "1"}, "cpus": 1.0, **more}
        key = f"{folder.name}-e{epoch}"
        return Task(key=key, folder=folder, output=folder / "output", command=command, **values)

    return make


def blank(key: str, folder: Path) -> Task:
    """Enough of a task to remove it by its key."""
    output = folder / "output"
    return Task(key=key, folder=folder, output=output, command=(), environment={}, cpus=0)


def python(source: str) -> tuple[str, ...]:
    """The command that runs this program with the interpreter of the tests."""
    return (sys.executable, "-c", source)


def ended(driver: Driver, task: Task) -> int | None:
    """Wait until it has ended; its exit code."""
    until(lambda: driver.inspect(task).state not in ("running", "frozen"), "it did not end")
    return driver.inspect(task).exit_code


def lines(task: Task) -> list[str]:
    """The whole lines of its output so far."""
    if not task.output.exists():
        return []
    return task.output.read_text().split("\n")[:-1]


def remove_groups(fleet: str) -> None:
    """Remove this fleet's control groups, which are left for the next container."""
    end = time.monotonic() + 10
    for group in [*ROOT.glob(f"tidepool/{fleet}-*"), *ROOT.glob(f"*/tidepool/{fleet}-*")]:
        while group.exists():
            try:
                group.rmdir()
            except OSError:
                assert time.monotonic() < end, f"{group} is still in use"
                time.sleep(0.01)
