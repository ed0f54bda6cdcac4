"""The process driver keeps the contract, with control groups and without."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.drivers.base import Driver, DriverError
from agents.drivers.cgroups import ROOT, Cgroups
from agents.drivers.process import ProcessDriver
from agents.drivers.trees import ProcessTree
from tests.agents.contract import DriverContract, MakeTask, until

# It would take half the memory of this machine if it were not stopped.
FORK_BOMB = "bomb() { bomb | bomb & }; bomb; sleep 1000"


HIERARCHIES = [root for root in (ROOT, ROOT / "unified") if (root / "cgroup.procs").exists()]
if (ROOT / "freezer").exists():
    HIERARCHIES.append(ROOT)


class WithGroups(DriverContract):
    @pytest.fixture
    def root(self) -> Path:
        return HIERARCHIES[-1]

    @pytest.fixture(autouse=True)
    def _groups(self, root: Path) -> Iterator[None]:
        self.place = f"tidepool/test-{uuid.uuid4().hex[:8]}", root
        groups = Cgroups(*self.place)
        if not groups.able:
            pytest.skip(groups.reason)
        yield
        groups.remove("")

    def new_driver(self, state: Path) -> Driver:
        driver = ProcessDriver(agent="none", state=state)
        driver.cgroups.close()
        driver.cgroups = Cgroups(*self.place)
        return driver


class TestEveryHierarchy(WithGroups):
    """Version 1, version 2, or both where a machine has both."""

    @pytest.fixture(params=HIERARCHIES, ids=str)
    def root(self, request: pytest.FixtureRequest) -> Path:
        return Path(request.param)


class TestWithControlGroups(WithGroups):
    def test_too_much_memory_is_told_apart(self, driver: Driver, make: MakeTask) -> None:
        grow = "import sys; block = b'x' * (1 << 28); print(len(block)); sys.exit(0)"
        task = make(("/usr/bin/env", "python3", "-c", grow), memory=64 << 20)
        driver.start(task)
        condition = self.ended(driver, task)
        assert condition.out_of_memory
        assert condition.exit_code == 137

    def test_a_fork_bomb_stays_within_its_limit(self, driver: Driver, make: MakeTask) -> None:
        task = make(("sh", "-c", FORK_BOMB), pids=24)
        driver.start(task)
        assert isinstance(driver, ProcessDriver)
        until(lambda: b"fork" in task.output.read_bytes().lower())
        assert len(driver.cgroups.processes(task.key)) <= 24
        driver.stop(task, 0.0)
        assert driver.cgroups.processes(task.key) == []

    def test_a_daemon_cannot_escape(self, driver: Driver, make: MakeTask) -> None:
        task = make(("sh", "-c", "setsid sh -c 'sleep 1000 & sleep 1000' & sleep 0.1; exit 0"))
        driver.start(task)
        assert self.ended(driver, task).exit_code == 0
        assert isinstance(driver, ProcessDriver)
        assert driver.cgroups.processes(task.key)
        driver.stop(task, 0.0)
        assert driver.cgroups.processes(task.key) == []

    def test_jobs_run_as_users_of_their_own_or_say_why_not(
        self, driver: Driver, make: MakeTask
    ) -> None:
        assert isinstance(driver, ProcessDriver)
        task = make(("sh", "-c", "id -u; touch mine; grep NoNewPrivs /proc/self/status"))
        driver.start(task)
        assert self.ended(driver, task).exit_code == 0
        said = task.output.read_text().split()
        if driver.users.reason:
            assert driver.users.reason in driver.probe()["run"].reason
        else:
            assert int(said[0]) not in (0, os.getuid())
        assert said[-1] == "1" or not driver.users.setpriv


class TestWithoutControlGroups(DriverContract):
    def new_driver(self, state: Path) -> Driver:
        driver = ProcessDriver(agent="none", state=state)
        driver.cgroups.close()
        driver.cgroups = Cgroups("tidepool/none", root=state / "no-cgroups-here")
        return driver

    def test_the_reason_is_declared(self, driver: Driver) -> None:
        assert "control groups" in driver.probe()["pause"].reason

    def test_memory_is_limited_for_each_process(self, driver: Driver, make: MakeTask) -> None:
        grow = "block = b'x' * (1 << 28)"
        task = make(("/usr/bin/env", "python3", "-c", grow), memory=128 << 20)
        driver.start(task)
        assert self.ended(driver, task).exit_code == 1
        assert "MemoryError" in task.output.read_text()

    def test_a_file_without_the_right_to_run_is_told_apart(
        self, driver: Driver, make: MakeTask
    ) -> None:
        task = make(("./run.sh",))
        (task.folder / "workspace" / "run.sh").write_text("#!/bin/sh\n")
        with pytest.raises(DriverError) as refusal:
            driver.start(task)
        assert refusal.value.id == "command-not-executable"

    def test_the_command_is_ended_when_its_keeper_is_killed(
        self, driver: Driver, make: MakeTask
    ) -> None:
        task = make(self.forever)
        driver.start(task)
        assert isinstance(driver, ProcessDriver)
        until((task.folder / "process/began").exists)
        keeper = driver.pid(task)
        assert keeper is not None
        until(lambda: len(ProcessTree(keeper).pids()) >= 2)
        os.kill(keeper, signal.SIGKILL)
        assert self.ended(driver, task).exit_code == 137
        driver.stop(task, 0.0)
        assert ProcessTree(keeper).pids() == []

    def test_the_whole_session_is_frozen(self, driver: Driver, make: MakeTask) -> None:
        task = make(("sh", "-c", "sleep 1000 & sleep 1001"))
        driver.start(task)
        assert isinstance(driver, ProcessDriver)
        pid = driver.pid(task)
        assert pid is not None
        tree = ProcessTree(pid)
        until(lambda: len(tree.pids()) >= 3)
        driver.freeze(task)
        assert tree.stopped()

    def test_a_program_that_begins_others_all_the_time_is_frozen_too(
        self, driver: Driver, make: MakeTask
    ) -> None:
        task = make(("sh", "-c", "while :; do /bin/true; done"))
        driver.start(task)
        for _ in range(5):
            driver.freeze(task)
            assert driver.inspect(task).state == "frozen"
            used = driver.use(task)
            assert driver.use(task) == used
            driver.thaw(task)
            assert driver.inspect(task).state == "running"
            until(lambda used=used: driver.use(task).cpu_s > used.cpu_s)  # type: ignore[misc]
