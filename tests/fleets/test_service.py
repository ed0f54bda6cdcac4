"""A server and its workers over open TCP connections: moved, checkpointed, killed, cut off."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from agents.fencing import Lease, uptime
from portal.demo.fleet import ENDED, Fleet
from tests.fleets.fleet import LEASE_S, HostFleet
from tests.fleets.service import Service, Ticks
from tests.product import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.criu, pytest.mark.timeout(600)]
WITHIN_S = 120.0


@contextlib.contextmanager
def watched(fleet: HostFleet, service: Service) -> Iterator[Ticks]:
    ticks = Ticks(fleet, service.job)
    try:
        yield ticks
        ticks.look()
        assert ticks.overlaps() == []
    finally:
        ticks.close()


def test_connections_outlive_moves_resizes_a_slow_wire_and_checkpoints(
    host_fleet: HostFleet, ana: Fleet
) -> None:
    service = Service(ana, replicas=3, fewest_devices=1)
    service.wait_for_step(5)
    with watched(host_fleet, service) as ticks:
        ticks.look()
        assert not service.migrate()["called_off"]
        service.wait_for_more()
        for devices in (1, 3):
            assert not service.resize(devices)["called_off"]
            service.wait_for_more()
            ticks.look()
        ticks.look()
        first = service.checkpoint()
        for name in service.nodes():
            host_fleet.host(name).slow(20_000_000)
        assert service.checkpoint()["number"] > first["number"]
        assert not service.migrate()["called_off"]
        for host in host_fleet.switch.hosts.values():
            host.quicken()
        service.wait_for_more()
    assert service.wrong() == []
    assert service.repeated() == 0


def test_a_host_that_is_cut_off_is_frozen_and_its_job_goes_on_elsewhere(
    host_fleet: HostFleet, ana: Fleet
) -> None:
    service = Service(ana, replicas=3)
    service.wait_for_step(5)
    service.checkpoint()
    service.wait_for_more()
    with watched(host_fleet, service) as ticks:
        ticks.look()
        lost = service.seats()[2]
        host_fleet.host(lost).cut()
        receipt = recovered(service)
        ticks.look()
        assert receipt["lost_s"] > 0
        assert lost not in service.nodes()
        assert host_fleet.containers(lost), "the lost host's replica stands there, frozen"
        service.wait_for_more()
        host_fleet.host(lost).join()
        wait_for(lambda: not host_fleet.containers(lost), "the frozen replica to go", WITHIN_S)
        service.wait_for_more()
    assert service.wrong() == []


def test_a_portal_that_is_away_for_longer_than_the_lease_costs_no_step(
    host_fleet: HostFleet, ana: Fleet
) -> None:
    service = Service(ana, replicas=2)
    service.wait_for_step(5)
    names = service.nodes()
    with watched(host_fleet, service) as ticks:
        ticks.look()
        portal = host_fleet.pid("portal")
        os.kill(portal, signal.SIGSTOP)
        try:
            for name in names:
                lease = Lease(host_fleet.state(name) / "lease")
                end = lease.contact + LEASE_S + 1
                wait_for(lambda end=end: uptime() > end, "the lease to be over", WITHIN_S)
        finally:
            os.kill(portal, signal.SIGCONT)
        service.wait_for_more()
    assert service.fates() == []
    assert service.nodes() == names
    assert service.repeated() == 0
    assert service.wrong() == []


def test_a_host_that_loses_power_takes_no_job_with_it(host_fleet: HostFleet, ana: Fleet) -> None:
    service = Service(ana, replicas=3)
    service.wait_for_step(5)
    service.checkpoint()
    with watched(host_fleet, service) as ticks:
        ticks.look()
        lost = service.seats()[0]
        host_fleet.halt(lost)
        recovered(service)
        assert lost not in service.nodes()
        service.wait_for_more()
        host_fleet.host(lost).join()
    assert service.wrong() == []


def recovered(service: Service) -> dict[str, object]:
    def found() -> dict[str, object] | None:
        closed = [each for each in service.fates() if each["resumed_at"]]
        return next((each for each in closed if each["kind"] == "recover"), None)

    receipt: dict[str, object] = wait_for(found, "the job to go on elsewhere", WITHIN_S)
    return receipt


def kill_rank(fleet: HostFleet, service: Service, rank: int) -> None:
    """End a rank's command with signal 9."""
    name = service.seats()[rank]
    key = next(k for k in fleet.containers(name) if k.startswith(f"j{service.job}-r{rank}-"))
    pid = int((fleet.state(name) / "containers" / "tasks" / key / "pid").read_text())
    os.kill(pid, signal.SIGKILL)


def test_a_rank_that_fails_ends_its_peers_and_is_tried_again_from_the_last_checkpoint(
    host_fleet: HostFleet, ana: Fleet
) -> None:
    service = Service(ana, replicas=3, retries=1)
    service.wait_for_step(5)
    service.checkpoint()
    service.wait_for_more()
    with watched(host_fleet, service) as ticks:
        ticks.look()
        kill_rank(host_fleet, service, 1)
        retried = wait_for(
            lambda: [each for each in service.fates() if each["resumed_at"]], "a retry", WITHIN_S
        )
        assert retried[0]["kind"] == "retry"
        assert "Replica 1 of 3" in retried[0]["sentence"]
        service.wait_for_more()
        ticks.look()
    assert service.wrong() == []
    assert service.lines(0), "it went on from the checkpoint, not from the beginning"
    assert service.numbers().count(1) == 1

    kill_rank(host_fleet, service, 2)
    wait_for(lambda: service.told()["state"] in ENDED, "the job to fail", WITHIN_S)
    told = service.told()
    assert (told["state"], told["exit_code"]) == ("failed", 137)
    assert told["detail"] == "Replica 2 of 3: Its command was ended by signal 9."
