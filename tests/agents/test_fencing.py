"""A node that is cut off stops its replicas before it is given up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agents import replica
from agents.fencing import FREEZE_AT, Lease, uptime
from agents.protocol import State
from tests.agents.conftest import Begin
from tests.agents.portal import Portal, wish

pytestmark = pytest.mark.asyncio


async def test_a_cut_off_node_freezes_itself_and_thaws_when_it_is_wanted(
    portal: Portal, begin: Begin, driver: str
) -> None:
    portal.lease_s = 1.5
    running = begin(driver=driver)
    await portal.linked()
    await portal.want(wish(1, "sleep", "1000"))
    await portal.fact(State.RUNNING)
    await portal.close()
    mine = running.agent.replicas["j1-r0-e1"]
    async with asyncio.timeout(20):
        while mine.record.stage != "frozen":
            await asyncio.sleep(0.01)
    task = running.agent.node.bare_task("j1-r0-e1")
    assert running.agent.node.driver.inspect(task).state == "frozen"
    await portal.open()
    await portal.fact(State.RUNNING)


async def test_given_up_meanwhile_it_never_runs_again(portal: Portal, begin: Begin) -> None:
    portal.lease_s = 1.5
    running = begin()
    await portal.linked()
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)
    await portal.close()
    mine = running.agent.replicas["j1-r0-e1"]
    async with asyncio.timeout(20):
        while mine.record.stage != "frozen":
            await asyncio.sleep(0.01)
    portal.history.clear()
    await portal.want(wish(1, "forever", epoch=2))
    await portal.open()
    await portal.fact(State.RUNNING, epoch=2)
    assert State.RUNNING not in {fact.state for fact in portal.history if fact.epoch == 1}


async def test_a_lease_counts_from_when_the_ping_was_sent(tmp_path: Path) -> None:
    lease = Lease(tmp_path / "lease")
    assert lease.freeze_at == float("inf")
    sent_at = uptime() - 3
    lease.renew(sent_at, 10.0)
    assert lease.freeze_at == pytest.approx(sent_at + FREEZE_AT * 10)
    lease.renew(sent_at - 5)
    assert lease.contact == sent_at, "an answer that comes late renews nothing"


async def test_a_restarted_agent_keeps_its_lease(tmp_path: Path) -> None:
    Lease(tmp_path / "lease").renew(uptime() - 3, 10.0)
    again = Lease(tmp_path / "lease")
    assert again.seconds == 10.0
    assert 2 < uptime() - again.contact < 60


@pytest.mark.parametrize("text", ["", "nonsense", "1e99 10", "5"])
async def test_a_damaged_lease_is_no_lease(tmp_path: Path, text: str) -> None:
    (tmp_path / "lease").write_text(text)
    assert Lease(tmp_path / "lease").freeze_at == float("inf")


async def test_what_the_guard_froze_for_nothing_goes_on(
    portal: Portal, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "AUDIT_S", 0.05)
    running = begin()
    await portal.linked()
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)
    driver, task = running.agent.node.driver, running.agent.node.bare_task("j1-r0-e1")
    driver.freeze(task)
    # The portal may never hear of it: of two facts in a moment only the newer one is told.
    async with asyncio.timeout(20):
        while driver.inspect(task).state != "running":
            await asyncio.sleep(0.01)
    await portal.fact(State.RUNNING)
