"""Agents that are killed with -9: what they ran goes on, once, and is taken up again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from agents.fencing import uptime
from agents.protocol import State, Want
from tests.agents.machine import Machine
from tests.agents.portal import Portal, wish

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

PATIENCE_S = 30.0


@pytest_asyncio.fixture
async def machine(portal: Portal, tmp_path: Path) -> AsyncIterator[Machine]:
    machine = Machine(portal, tmp_path)
    await machine.boot()
    await portal.linked()
    yield machine
    await machine.clear()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.02)


async def test_what_runs_is_adopted(portal: Portal, machine: Machine) -> None:
    script = "echo $$; read -r line < /dev/null; while [ ! -e stop ]; do sleep 0.05; done; exit 5"
    await portal.want(wish(1, "sh", "-c", script))
    await portal.until(lambda: portal.output.get((1, 0)))
    await machine.kill()
    assert psutil.pid_exists(int(portal.output[1, 0]))
    await machine.boot()
    await portal.linked(times=2)
    await portal.fact(State.RUNNING)
    (machine.config.state / "replicas/j1-r0-e1/workspace/stop").touch()
    assert (await portal.fact(State.EXITED)).exit_code == 5
    assert len(portal.output[1, 0].splitlines()) == 1, "it was started once"


async def test_what_ended_meanwhile_is_told(portal: Portal, machine: Machine) -> None:
    script = "echo began; while [ ! -e stop ]; do sleep 0.05; done; echo ended; exit 6"
    await portal.want(wish(1, "sh", "-c", script))
    await portal.until(lambda: portal.output.get((1, 0)))
    await machine.kill()
    folder = machine.config.state / "replicas/j1-r0-e1"
    (folder / "workspace/stop").touch()
    await until((folder / "process/exit").exists)
    await machine.boot()
    assert (await portal.fact(State.EXITED)).exit_code == 6
    await portal.said(b"began\nended\n")
    await portal.until(lambda: portal.facts[1, 0, 1].outputs)


async def test_killed_at_any_moment_every_job_runs_exactly_once(
    portal: Portal, machine: Machine
) -> None:
    jobs = range(1, 25)
    wishes = [wish(job, "sh", "-c", f"echo job {job}; exit {job}") for job in jobs]
    for moment, delay in enumerate((0.0, 0.01, 0.02, 0.04, 0.08)):
        await portal.want(*wishes[: 5 * (moment + 1)])
        await asyncio.sleep(delay)
        await machine.kill()
        await machine.boot()
        await portal.linked(times=moment + 2)
    await portal.want(*wishes)
    for job in jobs:
        assert (await portal.fact(State.EXITED, job=job)).exit_code == job
        await portal.said(b"job %d\n" % job, job=job)


async def test_what_no_journal_knows_is_removed(portal: Portal, machine: Machine) -> None:
    await portal.want(wish(1, "sh", "-c", "echo $$; sleep 1000"))
    await portal.until(lambda: portal.output.get((1, 0)))
    pid = int(portal.output[1, 0])
    await machine.kill()
    (machine.config.state / "journal").unlink()
    await portal.want(wish(2, "sleep", "1000"))
    await machine.boot()
    await portal.fact(State.RUNNING, job=2)
    await until(lambda: not psutil.pid_exists(pid))
    assert await machine.leftovers() == ["j2-r0-e1"]


async def test_a_frozen_one_stays_frozen(portal: Portal, machine: Machine) -> None:
    await portal.want(wish(1, "sleep", "1000"))
    await portal.fact(State.RUNNING)
    await portal.want(wish(1, "sleep", "1000", want=Want.FROZEN))
    await portal.fact(State.FROZEN)
    await machine.kill()
    portal.history.clear()
    await machine.boot()
    await portal.linked(times=2)
    await portal.fact(State.FROZEN)
    assert {fact.state for fact in portal.history} == {State.FROZEN}


async def test_the_guard_freezes_what_a_dead_agent_cannot(portal: Portal, machine: Machine) -> None:
    await portal.want(wish(1, "sleep", "1000"))
    await portal.fact(State.RUNNING)
    await machine.kill()
    await portal.close()
    # The lease is made to be over, as if its seconds had passed.
    (machine.config.state / "lease").write_text(f"{uptime() - 60:.3f} 20.000\n")
    node = machine.node()
    task = node.bare_task("j1-r0-e1")
    await until(lambda: node.driver.inspect(task).state == "frozen")
    await portal.open()
    await machine.boot()
    await portal.linked(times=2)
    await portal.fact(State.RUNNING)


async def test_two_agents_do_not_share_a_state_folder(portal: Portal, machine: Machine) -> None:
    second = Machine.__new__(Machine)
    second.config, second.process = machine.config, None
    await second.boot()
    assert second.process is not None
    assert await second.process.wait() == 2


async def test_told_to_stop_it_leaves_what_runs(portal: Portal, machine: Machine) -> None:
    await portal.want(wish(1, "sleep", "1000"))
    await portal.fact(State.RUNNING)
    await machine.kill(signal.SIGTERM)
    assert await machine.leftovers() == ["j1-r0-e1"]
    portal.history.clear()
    await machine.boot()
    await portal.linked(times=2)
    await portal.fact(State.RUNNING)
    assert State.PREPARING not in {fact.state for fact in portal.history}
