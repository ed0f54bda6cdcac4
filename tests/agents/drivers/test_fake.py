"""The fake driver keeps the contract, and its time is its clock's."""

from __future__ import annotations

from pathlib import Path

from agents.drivers.base import Driver
from agents.drivers.fake import FakeDriver
from tests.agents.contract import DriverContract, MakeTask


class TestFakeDriver(DriverContract):
    forever = ("forever",)
    ends_with_3 = ("exit", "3")
    says_hello = ("say", "hello")
    missing = ("missing",)

    def new_driver(self, state: Path) -> Driver:
        return FakeDriver(state=state)


class TestFakeTime(DriverContract):
    forever = ("sleep", "10")
    ends_with_3 = ("sh", "-c", "exit 3")
    says_hello = ("sh", "-c", "say hello")
    missing = ("missing",)
    now = 100.0

    def new_driver(self, state: Path) -> Driver:
        return FakeDriver(state=state, clock=lambda: self.now)

    def test_it_sleeps_by_its_clock_and_not_while_frozen(
        self, driver: Driver, make: MakeTask
    ) -> None:
        task = make(("sleep", "10"))
        driver.start(task)
        self.now += 4
        driver.freeze(task)
        self.now += 100
        driver.thaw(task)
        self.now += 5
        assert driver.inspect(task).state == "running"
        self.now += 1
        assert driver.inspect(task).state == "exited"
