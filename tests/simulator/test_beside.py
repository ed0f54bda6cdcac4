"""Simulations in their own process show the same, step back, end when told, and say why not."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.planner import PRESETS
from scheduler.simulator.beside import (
    NICENESS,
    Case,
    Play,
    RefusedError,
    SimulationFailedError,
    play_beside,
    step_back,
)
from scheduler.simulator.fleets import grid
from scheduler.simulator.records import record
from scheduler.simulator.simulation import simulate
from scheduler.simulator.synthetic import recipe_named, synthetic
from tests.simulator.scenes import scene

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # it steps back behind everyone


def test_it_shows_what_simulations_in_this_process_show() -> None:
    trace = scene("0 10 2", "5 3 1", "6 9 4")
    cases = tuple(Case(fleet=grid(2, n), policy=PRESETS["fifo"]) for n in (2, 3))
    heard: list[float] = []

    def going_on(share: float) -> bool:
        heard.append(share)
        return True

    found = play_beside(Play(trace=trace, cases=cases), going_on)
    assert found is not None
    assert found.records == [record(simulate(trace, one.fleet, one.policy)) for one in cases]
    assert (found.name, found.jobs) == ("scene", 3)
    assert heard


def test_a_file_is_read_there_and_its_broken_lines_are_told(tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    path.write_text("submit_time,duration,gpus,colour\n0,5,1,red\nx,5,1,red\n")
    case = Case(fleet=grid(1, 1), policy=PRESETS["fifo"])
    found = play_beside(Play(trace=path, name="mine.csv", cases=(case,)), lambda share: True)
    assert found is not None
    assert (found.name, found.jobs, found.unused) == ("mine.csv", 1, ["colour"])
    assert found.broken == ["line 3: submit_time is neither seconds nor a date: 'x'"]
    strict = Play(trace=path, name="mine.csv", cases=(case,), strict=True)
    with pytest.raises(RefusedError, match=r"mine\.csv, line 3"):
        play_beside(strict, lambda share: True)
    gone = Play(trace=tmp_path / "gone.csv", cases=(case,))
    with pytest.raises(RefusedError, match="could not be read: No such file"):
        play_beside(gone, lambda share: True)


def busy(jobs: int) -> Play:
    trace = synthetic(recipe_named(f"poisson,jobs={jobs},load=0.9,devices=64"), seed=1)
    return Play(trace=trace, cases=(Case(fleet=grid(16, 4), policy=PRESETS["default"]),))


def test_it_ends_when_it_is_called_off() -> None:
    assert play_beside(busy(20_000), lambda share: False) is None


def test_it_takes_no_more_memory_than_it_may(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    path.write_text("submit_time,duration,gpus\n" + "0,5,1\n" * 15_000)
    case = Case(fleet=grid(1, 1), policy=PRESETS["fifo"])
    play = Play(trace=path, cases=(case,), most_bytes=30 * 2**20)
    with pytest.raises(RefusedError, match=r"more than 0\.0 GiB of memory"):
        play_beside(play, lambda share: True)


def test_it_steps_back_behind_everyone_in_its_own_session_and_out_of_it() -> None:
    read, write = os.pipe()
    if not (child := os.fork()):  # pragma: no cover - niceness cannot be taken back
        os.setsid()
        step_back()
        group = Path("/proc/self/autogroup")
        told = group.read_text() if group.exists() else ""
        os.write(write, f"{os.nice(0)} {told}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    niceness, *grouped = os.read(read, 200).decode().split()
    os.close(read)
    os.close(write)
    assert int(niceness) == NICENESS
    assert not grouped or int(grouped[-1]) == NICENESS


def test_it_says_why_it_failed() -> None:
    trace = scene("0 10 2")
    broken = replace(trace, arrivals=(replace(trace.arrivals[0], gpus=0, replicas=0),))
    case = Case(fleet=grid(1, 2), policy=PRESETS["default"])
    with pytest.raises(SimulationFailedError, match="Error"):
        play_beside(Play(trace=broken, cases=(case,)), lambda share: True)
