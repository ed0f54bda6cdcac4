"""A running replica is measured, and given more or fewer CPUs, without being disturbed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agents.drivers.process import ProcessDriver
from agents.lifecycle import Act
from agents.protocol import Profile, State, Want
from tests.agents.conftest import Begin
from tests.agents.machine import Machine
from tests.agents.portal import PATIENCE_S, Portal, wish

pytestmark = pytest.mark.asyncio

SPIN = (sys.executable, "-u", "-c", "n = 0\nwhile True:\n    n += 1")
SLEEP = ("sleep", "1000")
NAP = (sys.executable, "-u", "-c", "import time\nwhile True:\n    time.sleep(0.01)")


async def measured(portal: Portal, number: int = 1, job: int = 1) -> Profile:
    """Wait until a profile was told."""

    def profile() -> Profile | None:
        fact = portal.facts.get((job, 0, 1))
        return fact.profile if fact is not None else None

    await portal.until(lambda: (found := profile()) is not None and found.number == number)
    found = profile()
    assert found is not None
    return found


async def test_a_profile_that_is_asked_for_is_measured_once(portal: Portal, begin: Begin) -> None:
    begin(profile_window_s=0.1)
    await portal.want(wish(1, "forever", devices=["cpu0"], profile=1))
    found = await measured(portal)
    assert {0.25, 1.0} <= {point.cpus for point in found.points}
    assert all(point.pace == pytest.approx(1.0, abs=0.05) for point in found.points)
    told = len(portal.history)
    await portal.want(wish(1, "forever", devices=["cpu0"], profile=1))
    await portal.want(wish(1, "forever", devices=["cpu0"], profile=2))
    assert (await measured(portal, 2)).at > found.at
    assert {fact.profile.number for fact in portal.history[told:] if fact.profile} == {1, 2}


async def test_one_replica_of_a_node_is_measured_at_a_time(portal: Portal, begin: Begin) -> None:
    agent = begin(profile_window_s=30.0).agent
    await portal.want(wish(1, "forever", devices=["cpu0"], profile=1))
    await portal.until(lambda: agent.node.measuring.locked())
    await portal.want(*portal.desired, wish(2, "forever", devices=["cpu1"], profile=1))
    await portal.fact(State.RUNNING, job=2)
    assert agent.replicas["j2-r0-e1"].choose() is Act.REST


async def test_whoever_is_wanted_elsewhere_is_not_kept(portal: Portal, begin: Begin) -> None:
    agent = begin(profile_window_s=30.0).agent
    await portal.want(wish(1, "forever", devices=["cpu0"], profile=1))
    await portal.until(lambda: agent.node.measuring.locked())
    await portal.want(wish(1, "forever", devices=["cpu0"], profile=1, want=Want.FROZEN))
    await portal.fact(State.FROZEN)
    assert not agent.node.measuring.locked()


@pytest.mark.parametrize("sharers", [2])
async def test_those_who_share_a_device_are_not_measured(
    portal: Portal, begin: Begin, sharers: int
) -> None:
    agent = begin(profile_window_s=0.1).agent
    await portal.want(wish(1, "forever", devices=["cpu0"], profile=1, sharers=sharers))
    await portal.fact(State.RUNNING)
    assert not agent.node.measuring.locked()
    assert portal.facts[1, 0, 1].profile is None


async def test_an_allotment_holds_from_now_on_and_threads_stay(
    portal: Portal, begin: Begin
) -> None:
    agent = begin(driver="process").agent
    driver = agent.node.driver
    assert isinstance(driver, ProcessDriver)
    if not driver.cgroups.profiles().able:
        pytest.skip(driver.cgroups.profiles().reason)
    say = ("sh", "-c", "echo $OMP_NUM_THREADS; exec sleep 1000")
    for allotted, cpus, wide in ((0.0, 1.0, "0"), (0.5, 0.5, "0"), (2.0, 2.0, "0-1"), (0, 1, "0")):
        await portal.want(wish(1, *say, devices=["cpu0"], allotted=allotted))
        await portal.fact(State.RUNNING)
        await held_to(driver, cpus, wide)
    await portal.said(b"1\n")


async def held_to(driver: ProcessDriver, cpus: float, wide: str) -> None:
    """Wait until the kernel holds job 1 to these CPUs."""
    async with asyncio.timeout(PATIENCE_S):
        while (quota(driver), cores(driver)) != (cpus, wide):
            await asyncio.sleep(0.01)


def quota(driver: ProcessDriver) -> float:
    """CPUs that the kernel holds job 1 to."""
    groups = driver.cgroups
    if groups.unified:
        return int((groups.freezer("j1-r0-e1") / "cpu.max").read_text().split()[0]) / 1e5
    folder = groups.root / "cpu" / groups.name / "j1-r0-e1"
    return int((folder / "cpu.cfs_quota_us").read_text()) / 1e5


def cores(driver: ProcessDriver) -> str:
    groups = driver.cgroups
    top = groups.root if groups.unified else groups.root / "cpuset"
    return (top / groups.name / "j1-r0-e1" / "cpuset.cpus").read_text().strip()


@pytest_asyncio.fixture
async def machine(portal: Portal, tmp_path: Path) -> AsyncIterator[Machine]:
    machine = Machine(portal, tmp_path)
    yield machine
    await machine.clear()


@pytest.mark.slow
async def test_real_programs_show_what_they_are(portal: Portal, begin: Begin) -> None:
    """One that computes loses what it is not given; one that naps loses nothing."""
    agent = begin(driver="process", profile_window_s=0.5).agent
    driver = agent.node.driver
    assert isinstance(driver, ProcessDriver)
    if not driver.cgroups.profiles().able:
        pytest.skip(driver.cgroups.profiles().reason)
    await portal.want(wish(1, *SPIN, devices=["cpu0"], profile=1))
    spinning = await measured(portal)
    await portal.want(wish(2, *NAP, devices=["cpu0"], profile=1))
    napping = await measured(portal, job=2)
    for found in (spinning, napping):
        # On a machine that does other things, too, nothing can be told, and that is what is said.
        assert found.points or "Others used" in found.error or "by itself" in found.error
        assert found.working > 1 << 20
    slowest = {point.cpus: point for point in spinning.points}.get(0.25)
    assert slowest is None or (slowest.pace < 0.6 and slowest.held_back > 0.5)
    assert {point.pace for point in napping.points} <= {1.0}


@pytest.mark.slow
async def test_a_killed_agent_leaves_nobody_slowed(portal: Portal, machine: Machine) -> None:
    driver = machine.node().driver
    assert isinstance(driver, ProcessDriver)
    if not driver.cgroups.profiles().able:
        pytest.skip(driver.cgroups.profiles().reason)
    await machine.link()
    await portal.want(wish(1, *SLEEP, devices=["cpu0"]))
    await portal.fact(State.RUNNING)
    await machine.kill()
    driver.cgroups.limit("j1-r0-e1", cpus=0.25, cpuset="")
    assert quota(driver) == 0.25
    await portal.want()
    portal.desired = [wish(1, *SLEEP, devices=["cpu0"])]
    await machine.link()
    await held_to(driver, 1.0, "0")
