"""An agent and a portal: what is wanted comes about, and what is there is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import agent
from agents.checkpoints import list_files
from agents.devices.fake import FakeDevices
from agents.protocol import Launch, State, Want
from tests.agents.conftest import Begin
from tests.agents.portal import Portal, wish

pytestmark = pytest.mark.asyncio


async def test_an_agent_says_what_its_node_is(portal: Portal, begin: Begin) -> None:
    begin(devices="fake:4:H100", underlay="10.0.0.7")
    hello = await portal.linked()
    assert (hello.node, hello.driver, hello.address) == ("n1", "fake", "10.0.0.7")
    assert [device.kind for device in hello.devices] == ["H100"] * 4
    assert hello.abilities["checkpoint"].able
    assert hello.memory > 0
    assert hello.boot


async def test_whatever_it_cannot_do_has_a_reason(portal: Portal, begin: Begin) -> None:
    begin(driver="process", devices="cpu:1")
    hello = await portal.linked()
    assert "device_checkpoint" in hello.abilities
    assert all(ability.able or ability.reason for ability in hello.abilities.values())


async def test_a_command_runs_to_its_end(portal: Portal, begin: Begin) -> None:
    begin(driver="process")
    await portal.linked()
    script = "echo to stdout; echo to stderr >&2; echo result > made.txt; exit 7"
    await portal.want(wish(1, "sh", "-c", script, devices=["cpu0"]))
    ended = await portal.fact(State.EXITED)
    assert ended.exit_code == 7
    assert ended.started_at <= ended.stopped_at
    assert {"prepare", "launch"} <= ended.phases.keys()
    await portal.until(lambda: portal.output.get((1, 0)) == b"to stdout\nto stderr\n")


async def test_the_workspace_is_stored_as_outputs(portal: Portal, begin: Begin) -> None:
    running = begin(driver="process")
    await portal.linked()
    await portal.want(wish(1, "sh", "-c", "mkdir out; echo result > out/made.txt"))
    await portal.until(lambda: portal.facts and next(iter(portal.facts.values())).outputs)
    outputs = (await portal.fact(State.EXITED)).outputs
    files = list_files(running.agent.node.store, outputs)
    assert [(file.path, file.size) for file in files] == [("out/made.txt", 7)]


async def test_the_environment_is_complete_and_secrets_stay_out_of_the_journal(
    portal: Portal, begin: Begin, tmp_path: Path
) -> None:
    begin(driver="process")
    await portal.linked()
    launch = Launch(
        command=["sh", "-c", "echo $RANK/$WORLD_SIZE $COLOUR $KEY; python -c 'import msgspec'"],
        environment={"COLOUR": "green"},
        secrets={"KEY": "open-sesame"},
    )
    await portal.want(wish(1, launch=launch, rank=1, world=3))
    assert (await portal.fact(State.EXITED, rank=1)).exit_code == 0
    await portal.until(lambda: portal.output.get((1, 1)) == b"1/3 green open-sesame\n")
    kept = [path for path in (tmp_path / "n1").rglob("*") if path.is_file()]
    told = [path for path in kept if path.name != "output"]
    assert not [path for path in told if b"open-sesame" in path.read_bytes()]
    assert (tmp_path / "n1" / "journal").stat().st_mode & 0o077 == 0


async def test_what_is_no_longer_named_is_ended_and_forgotten(
    portal: Portal, begin: Begin, driver: str, tmp_path: Path
) -> None:
    running = begin(driver=driver)
    await portal.linked()
    await portal.want(wish(1, "sleep", "1000"))
    await portal.fact(State.RUNNING)
    await portal.want()
    await portal.until(lambda: any(f.state is State.ABSENT for f in portal.history))
    await portal.want(wish(2, "sleep", "1000"))
    await portal.fact(State.RUNNING, job=2)
    assert list(portal.facts) == [(2, 0, 1)]
    assert running.agent.node.driver.leftovers() == ["j2-r0-e1"]
    assert not (tmp_path / "n1" / "replicas" / "j1-r0-e1").exists()


async def test_one_that_is_cancelled_keeps_its_files(portal: Portal, begin: Begin) -> None:
    begin(driver="process")
    await portal.linked()
    command = ("sh", "-c", "echo so far > result; exec sleep 1000")
    await portal.want(wish(1, *command))
    await portal.fact(State.RUNNING)
    await portal.want(wish(1, *command, want=Want.ABSENT))
    await portal.until(lambda: portal.history[-1].state is State.ABSENT)
    assert portal.history[-1].outputs


async def test_asked_for_absent_where_nothing_was_it_says_absent(
    portal: Portal, begin: Begin
) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, want=Want.ABSENT, epoch=4))
    await portal.until(lambda: any(f.state is State.ABSENT for f in portal.history))
    assert portal.history[-1].epoch == 4


async def test_it_freezes_and_thaws(portal: Portal, begin: Begin, driver: str) -> None:
    begin(driver=driver)
    await portal.linked()
    command = "sleep", "1000"
    await portal.want(wish(1, *command))
    await portal.fact(State.RUNNING)
    await portal.want(wish(1, *command, want=Want.FROZEN))
    frozen = await portal.fact(State.FROZEN)
    assert "freeze" in frozen.phases
    assert frozen.stopped_at >= frozen.started_at > 0
    await portal.want(wish(1, *command))
    await portal.fact(State.RUNNING)


async def test_a_held_replica_waits_for_its_peers(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever", hold=True))
    await portal.fact(State.READY)
    assert not [fact for fact in portal.history if fact.state is State.RUNNING]
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (["no-such-program"], "command-not-found"),
        (["./no-such-file"], "command-not-found"),
    ],
)
async def test_what_cannot_be_started_fails_with_a_sentence(
    portal: Portal, begin: Begin, command: list[str], error: str
) -> None:
    begin(driver="process")
    await portal.linked()
    await portal.want(wish(1, *command))
    failed = await portal.fact(State.FAILED)
    assert failed.error == error
    assert command[0] in failed.detail


async def test_a_device_that_is_not_here_is_refused(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever", devices=["cpu7"]))
    failed = await portal.fact(State.FAILED)
    assert failed.error == "device-unknown"
    assert "cpu0, cpu1" in failed.detail


async def test_a_newer_epoch_begins_only_when_the_older_is_gone(
    portal: Portal, begin: Begin
) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever"))
    await portal.fact(State.RUNNING)
    await portal.want(wish(1, "forever", epoch=2), wish(1, "forever"))
    await portal.fact(State.RUNNING, epoch=2)
    states = [(fact.epoch, fact.state) for fact in portal.history]
    assert states.index((1, State.ABSENT)) < states.index((2, State.RUNNING))
    assert states.count((1, State.RUNNING)) == states[: states.index((1, State.ABSENT))].count(
        (1, State.RUNNING)
    )


async def test_an_older_epoch_is_not_begun_beside_a_newer(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    await portal.want(wish(1, "forever", epoch=5))
    await portal.fact(State.RUNNING, epoch=5)
    await portal.want(wish(1, "forever", epoch=5), wish(1, "forever", epoch=4))
    await portal.until(lambda: any((f.epoch, f.state) == (4, State.ABSENT) for f in portal.history))
    await portal.fact(State.RUNNING, epoch=5)


async def test_telemetry_names_devices_and_replicas(portal: Portal, begin: Begin) -> None:
    begin(devices="fake:2:H100")
    await portal.linked()
    await portal.want(wish(1, "forever", devices=["h1001"]))
    await portal.until(lambda: portal.telemetry and portal.telemetry[-1].replicas)
    use = {device.id: device.utilisation for device in portal.telemetry[-1].devices}
    assert use == {"h1000": 0.0, "h1001": 1.0}
    assert portal.telemetry[-1].replicas[0].job == 1


async def test_a_device_that_falls_ill_is_told(
    portal: Portal, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "PROBE_S", 0.05)
    running = begin(devices="fake:2:H100")
    await portal.linked()
    devices = running.agent.node.devices
    assert isinstance(devices, FakeDevices)
    devices.sick["h1001"] = "it fell off the bus"
    await portal.until(lambda: portal.hellos[-1].devices[1].sick == "it fell off the bus")
