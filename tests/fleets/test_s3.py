"""A fleet whose chunks lie in S3: jobs are moved and brought back, and nothing tells the key."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.checkpoints import open_store
from portal.demo.fleet import Fleet
from tests.fleets.conftest import needs_hosts
from tests.fleets.fleet import HostFleet
from tests.fleets.remains import stray_chunks
from tests.fleets.service import Service
from tests.product import wait_for
from tests.s3 import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.criu, pytest.mark.timeout(600)]
STEPS = 400
CACHE = 4 * 1024**2
WITHIN_S = 180.0


@pytest.fixture
def server() -> Iterator[S3Server]:
    with S3Server() as running:
        yield running


@pytest.fixture
def bucket(server: S3Server) -> str:
    return server.make_bucket()


@pytest.fixture
def fleet(server: S3Server, bucket: str, tmp_path: Path) -> Iterator[HostFleet]:
    needs_hosts()
    fleet = HostFleet(tmp_path / "home", ("host-a", "host-b"))
    fleet.environment |= server.environment(fleet.switch.address)
    fleet.environment |= {"TIDEPOOL_STORE": bucket, "TIDEPOOL_CACHE": str(CACHE / 1024**3)}
    with fleet:
        yield fleet


def test_a_job_is_moved_and_brought_back_through_s3(
    fleet: HostFleet, server: S3Server, bucket: str
) -> None:
    with contextlib.closing(Fleet(fleet.url, fleet.token("ana"), "vision")) as ana:
        service = Service(ana, replicas=2, steps=STEPS)
        service.wait_for_step(3)
        assert not service.migrate()["called_off"]
        service.wait_for_more()
        service.checkpoint()
        (lost,) = service.nodes()
        fleet.host(lost).cut()
        wait_for(lambda: [f for f in service.fates() if f["kind"] == "recover"], "it", WITHIN_S)
        fleet.host(lost).join()
        wait_for(lambda: service.told()["ended_at"], "the job to end", WITHIN_S)
        assert service.told()["state"] == "succeeded"
        assert service.wrong() == []
        wait_for(lambda: not fleet.leftovers(), "hosts to be empty", WITHIN_S)
        times = ana.http.get(f"jobs/{service.job}/files/0/ticks")
        assert len(times.text.splitlines()) == STEPS
    store = open_store(bucket, options=server.options)
    assert stray_chunks(fleet, store) == []
    for name in fleet.switch.hosts:
        kept = sum(path.stat().st_size for path in fleet.state(name).rglob("chunks/c/*/*"))
        assert 0 < kept <= CACHE
    assert not (fleet.home / "store" / "m").exists(), "the store is not in the home"
    assert told_of(server, fleet) == []


def told_of(server: S3Server, fleet: HostFleet) -> list[Path]:
    """Logs, rows and journals that the key or its name stands in."""
    words = (server.key.encode(), server.secret.encode())
    files = [
        f for kind in ("log/*", "*.sqlite3*", "agents/*/journal") for f in fleet.home.glob(kind)
    ]
    assert len(files) > 4
    return [path for path in files if any(word in path.read_bytes() for word in words)]
