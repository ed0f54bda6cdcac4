"""One fleet of four hosts for all tests here, found healthy and empty by each, and left so."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

import httpx
import pytest

from portal.demo.fleet import Fleet
from tests.fleets.fleet import HostFleet
from tests.product import wait_for

HOSTS = ("host-a", "host-b", "host-c", "host-d")


def needs_hosts() -> None:
    if os.geteuid() != 0 or shutil.which("nsenter") is None:
        pytest.skip("hosts need root and nsenter")


@pytest.fixture(scope="session")
def host_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostFleet]:
    needs_hosts()
    with HostFleet(tmp_path_factory.mktemp("fleet"), HOSTS) as running:
        yield running


@pytest.fixture
def ana(host_fleet: HostFleet) -> Iterator[Fleet]:
    """The API as ana of tenant vision sees it; her jobs end with the test, and leave nothing."""
    wait_for(host_fleet.healthy, "the fleet to be healthy", 120)
    fleet = Fleet(host_fleet.url, host_fleet.token("ana"), "vision")
    try:
        yield fleet
        for host in host_fleet.switch.hosts.values():
            host.join()
        with contextlib.suppress(httpx.HTTPError):
            for job in fleet.live():
                fleet.cancel(job)
        wait_for(lambda: not host_fleet.leftovers(), "hosts to be empty again", 60)
    finally:
        fleet.close()
