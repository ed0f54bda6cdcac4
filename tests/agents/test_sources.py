"""A workspace is filled from an upload that is fetched with the node's token and checked."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from pathlib import Path

import pytest

from agents.lifecycle import Act
from agents.protocol import Launch, Source, State
from agents.replica import PATIENCE_S
from agents.sources import SourceError
from tests.agents.conftest import Begin
from tests.agents.portal import Portal, wish

pytestmark = pytest.mark.asyncio


def archive(**files: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def launch(portal: Portal, content: bytes, filename: str, *command: str) -> Launch:
    portal.uploads["/source/7"] = content
    sha256 = hashlib.sha256(content).hexdigest()
    source = Source(upload="/source/7", filename=filename, sha256=sha256)
    return Launch(command=list(command), source=source)


async def test_an_archive_is_unpacked_and_fetched_once(portal: Portal, begin: Begin) -> None:
    begin(driver="process")
    await portal.linked()
    launched = launch(portal, archive(code__run="echo unpacked"), "job.tar.gz", "sh", "code/run")
    await portal.want(*(wish(1, launch=launched, rank=rank) for rank in range(3)))
    for rank in range(3):
        await portal.said(b"unpacked\n", rank=rank)
    assert portal.fetched == ["/source/7"]


async def test_a_plain_file_keeps_its_name(portal: Portal, begin: Begin) -> None:
    begin(driver="process")
    await portal.linked()
    await portal.want(wish(1, launch=launch(portal, b"echo plain", "run.sh", "sh", "run.sh")))
    await portal.said(b"plain\n")


async def test_another_checksum_is_refused(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    launched = launch(portal, b"one thing", "run.sh", "sh", "run.sh")
    portal.uploads["/source/7"] = b"another"
    await portal.want(wish(1, launch=launched))
    assert (await portal.fact(State.FAILED)).error == "source-damaged"


async def test_an_upload_that_the_portal_refuses_is_named(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    gone = Launch(command=["forever"], source=Source(upload="/source/8", sha256="00" * 32))
    await portal.want(wish(1, launch=gone))
    failed = await portal.fact(State.FAILED)
    assert failed.error == "source-refused"
    assert "404" in failed.detail


async def test_an_archive_that_escapes_is_refused(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    escaping = launch(portal, archive(**{"..__outside": "x"}), "job.tar.gz", "forever")
    await portal.want(wish(1, launch=escaping))
    failed = await portal.fact(State.FAILED)
    assert failed.error.startswith("archive-")


async def test_git_from_this_machine_is_refused(portal: Portal, begin: Begin) -> None:
    begin()
    await portal.linked()
    local = Launch(command=["forever"], source=Source(git="file:///etc"))
    await portal.want(wish(1, launch=local))
    assert (await portal.fact(State.FAILED)).error == "source-refused"


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """A git server that is away for as long as this is set."""
    away = threading.Event()
    away.set()

    def clone(url: str, ref: str, workspace: Path) -> str:
        if away.is_set():
            raise SourceError("repository-unreachable", "Git could not get x: Connection refused")
        (workspace / "run").write_text("echo cloned")
        return "0" * 40

    monkeypatch.setattr("agents.workspaces.clone", clone)
    monkeypatch.setattr("agents.replica.RETRY_S", (0.01, 0.05))
    return away


GIT = Launch(command=["sh", "run"], source=Source(git="https://git.example.org/x.git"))


async def test_a_git_server_that_is_away_is_waited_for_and_it_says_so(
    portal: Portal, begin: Begin, away: threading.Event
) -> None:
    begin(driver="process")
    await portal.linked()
    await portal.want(wish(1, launch=GIT))
    await portal.until(lambda: any(fact.detail for fact in portal.facts.values()))
    (fact,) = portal.facts.values()
    assert (fact.state, fact.error) == (State.PREPARING, "")
    assert "Connection refused" in fact.detail
    away.clear()
    await portal.said(b"cloned\n")
    assert (await portal.fact(State.EXITED)).detail == ""


async def test_a_git_server_that_stays_away_is_named_in_the_end(
    portal: Portal, begin: Begin, away: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PATIENCE_S, Act.PREPARE, 0.0)
    begin(driver="process")
    await portal.linked()
    await portal.want(wish(1, launch=GIT))
    failed = await portal.fact(State.FAILED)
    assert failed.error == "repository-unreachable"
    assert "Connection refused" in failed.detail
