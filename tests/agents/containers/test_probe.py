"""What a node can do is found by trying; success is remembered, failure is tried again."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import create_autospec

import pytest

from agents.containers.probe import abilities, obstacle_to_run, unable
from agents.drivers.base import Driver, DriverError

ALL = {"run", "pause", "checkpoint", "migrate", "network"}


@pytest.fixture
def driver() -> Driver:
    trial: Driver = create_autospec(Driver, instance=True)
    return trial


def lacking(driver: Driver, state: Path, obstacle: str = "") -> dict[str, str]:
    found = abilities(driver, state, versions="1", obstacle=obstacle)
    assert found.keys() == ALL
    return {name: ability.reason for name, ability in found.items() if not ability.able}


def test_what_went_well_is_not_tried_again(driver: Driver, tmp_path: Path) -> None:
    assert lacking(driver, tmp_path) == {}
    assert lacking(driver, tmp_path) == {}
    assert driver.start.call_count == 1  # type: ignore[attr-defined]
    assert driver.remove.called  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("verb", "lost"),
    [
        ("start", ALL),
        ("freeze", {"pause", "checkpoint", "migrate"}),
        ("dump", {"checkpoint", "migrate"}),
        ("restore", {"checkpoint", "migrate"}),
    ],
)
def test_what_fails_takes_what_depends_on_it_and_is_tried_again(
    driver: Driver, tmp_path: Path, verb: str, lost: set[str]
) -> None:
    getattr(driver, verb).side_effect = DriverError("broken", "It is broken.")
    assert lacking(driver, tmp_path) == dict.fromkeys(lost, "It is broken.")
    getattr(driver, verb).side_effect = None
    assert lacking(driver, tmp_path) == {}


def test_with_an_obstacle_no_dump_is_tried(driver: Driver, tmp_path: Path) -> None:
    assert lacking(driver, tmp_path, "criu is old").keys() == {"checkpoint", "migrate"}
    assert not driver.dump.called  # type: ignore[attr-defined]
    assert lacking(driver, tmp_path) == {}, "the obstacle has gone"


def test_a_node_that_cannot_run_containers_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert obstacle_to_run(Path("/runc"), (), "") == ""
    assert obstacle_to_run(None, ("runc is not installed",), "") == "runc is not installed"
    assert obstacle_to_run(Path("/runc"), (), "no freezer") == "no freezer"
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "root" in obstacle_to_run(Path("/runc"), (), "")
    assert unable("no root").keys() == ALL
