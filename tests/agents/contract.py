"""What every driver must do. Subclass ``DriverContract`` in a test module and give it a driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.drivers.base import Condition, Driver, DriverError, Task

PATIENCE_S = 30.0
PATH = "/usr/local/bin:/usr/bin:/bin"

MakeTask = Callable[..., Task]


def until(condition: Callable[[], Any], what: str = "") -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, what or "it did not come about"
        time.sleep(0.01)


class DriverContract:
    """Commands are in the words of a shell; a driver that knows others overrides them."""

    forever: tuple[str, ...] = ("sleep", "1000")
    ends_with_3: tuple[str, ...] = ("sh", "-c", "exit 3")
    says_hello: tuple[str, ...] = ("echo", "hello")
    missing: tuple[str, ...] = ("no-such-program",)

    def new_driver(self, state: Path) -> Driver:
        """A driver over this state folder; called again to play a restarted agent."""
        raise NotImplementedError

    @pytest.fixture
    def driver(self, tmp_path: Path) -> Driver:
        return self.new_driver(tmp_path)

    @pytest.fixture
    def make(self, driver: Driver, tmp_path: Path) -> Iterator[MakeTask]:
        made: list[Task] = []

        def make(command: tuple[str, ...], job: int = 1, **more: Any) -> Task:
            folder = tmp_path / "replicas" / f"j{job}-r0-e1"
            (folder / "workspace").mkdir(parents=True)
            values = {"environment": {"PATH": PATH, "HOME": "/"}, "cpus": 1.0, **more}
            task = Task(
                key=folder.name, folder=folder, output=folder / "output", command=command, **values
            )
            made.append(task)
            return task

        yield make
        for task in made:
            driver.remove(task)

    def ended(self, driver: Driver, task: Task) -> Condition:
        until(lambda: driver.inspect(task).state not in ("running", "frozen"))
        return driver.inspect(task)

    def test_every_ability_is_declared_and_a_lack_has_a_reason(self, driver: Driver) -> None:
        abilities = driver.probe()
        assert {"run", "pause", "checkpoint", "migrate", "network"} <= abilities.keys()
        assert abilities["run"].able
        assert all(ability.able or ability.reason for ability in abilities.values())

    def test_the_exit_code_is_kept(self, driver: Driver, make: MakeTask) -> None:
        task = make(self.ends_with_3)
        driver.start(task)
        condition = self.ended(driver, task)
        assert (condition.state, condition.exit_code) == ("exited", 3)

    def test_output_goes_to_its_file(self, driver: Driver, make: MakeTask) -> None:
        task = make(self.says_hello)
        driver.start(task)
        self.ended(driver, task)
        assert task.output.read_text() == "hello\n"

    def test_starting_twice_starts_once(self, driver: Driver, make: MakeTask) -> None:
        task = make(self.says_hello)
        driver.start(task)
        self.ended(driver, task)
        driver.start(task)
        self.ended(driver, task)
        assert task.output.read_text() == "hello\n"

    def test_what_was_never_started_is_gone(self, driver: Driver, make: MakeTask) -> None:
        assert driver.inspect(make(self.forever)).state == "gone"

    def test_a_missing_program_is_named(self, driver: Driver, make: MakeTask) -> None:
        task = make(self.missing)
        with pytest.raises(DriverError) as refusal:
            driver.start(task)
        assert refusal.value.id == "command-not-found"
        assert driver.inspect(task).state == "gone"

    def test_freezing_and_thawing_can_be_repeated(self, driver: Driver, make: MakeTask) -> None:
        task = make(self.forever)
        driver.start(task)
        for _ in range(2):
            driver.freeze(task)
            driver.freeze(task)
            assert driver.inspect(task).state == "frozen"
            driver.thaw(task)
            driver.thaw(task)
            assert driver.inspect(task).state == "running"

    def test_what_is_frozen_uses_no_cpu(self, driver: Driver, make: MakeTask) -> None:
        task = make(self.forever)
        driver.start(task)
        driver.freeze(task)

        def stands_still() -> bool:
            before = driver.use(task).cpu_s
            time.sleep(0.05)
            return driver.use(task).cpu_s == before

        until(stands_still)

    @pytest.mark.parametrize("frozen", [False, True])
    @pytest.mark.parametrize("grace_s", [0.0, 5.0])
    def test_stopping_ends_it(
        self, driver: Driver, make: MakeTask, grace_s: float, *, frozen: bool
    ) -> None:
        task = make(self.forever)
        driver.start(task)
        if frozen:
            driver.freeze(task)
        driver.stop(task, grace_s)
        condition = self.ended(driver, task)
        assert condition.state == "exited"
        assert condition.exit_code in (128 + 15, 128 + 9)
        driver.stop(task, grace_s)

    def test_removing_leaves_nothing(self, driver: Driver, make: MakeTask) -> None:
        running, ended = make(self.forever, 1), make(self.says_hello, 2)
        driver.start(running)
        driver.start(ended)
        self.ended(driver, ended)
        for _ in range(2):
            driver.remove(running)
            driver.remove(ended)
            assert driver.inspect(running).state == "gone"
            assert driver.leftovers() == []
        assert ended.output.exists(), "output outlives the task"

    def test_a_restarted_agent_finds_it_running(
        self, driver: Driver, make: MakeTask, tmp_path: Path
    ) -> None:
        task = make(self.forever)
        driver.start(task)
        again = self.new_driver(tmp_path)
        assert again.leftovers() == [task.key]
        assert again.inspect(task).state == "running"
        again.freeze(task)
        assert driver.inspect(task).state == "frozen"
        again.stop(task, 0.0)
        assert self.ended(again, task).exit_code == 137

    def test_dump_and_restore_as_declared(self, driver: Driver, make: MakeTask) -> None:
        task = make(self.forever)
        images = task.folder / "images"
        driver.start(task)
        driver.freeze(task)
        if not driver.probe()["checkpoint"].able:
            with pytest.raises(DriverError) as refusal:
                driver.dump(task, images)
            assert refusal.value.id == "checkpoint-unable"
            assert driver.inspect(task).state == "frozen"
            return
        driver.dump(task, images)
        assert driver.inspect(task).state == "frozen"
        driver.remove(task)
        driver.restore(task, images)
        assert driver.inspect(task).state == "frozen"
        driver.thaw(task)
        assert driver.inspect(task).state == "running"
