"""Folders of replicas and the cache of uploads."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.drivers.base import DriverError
from agents.protocol import Source
from agents.workspaces import Workspaces


class Uploads(http.server.BaseHTTPRequestHandler):
    """Answers any path with 1000 bytes of its last letter."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = self.path[-1].encode() * 1000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def portal() -> Iterator[str]:
    Uploads.asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Uploads) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def source(letter: str) -> Source:
    sha256 = hashlib.sha256(letter.encode() * 1000).hexdigest()
    return Source(upload=f"/{letter}", filename=f"{letter}.txt", sha256=sha256)


def test_the_cache_is_bounded_and_the_oldest_goes_first(tmp_path: Path, portal: str) -> None:
    workspaces = Workspaces(tmp_path, portal=portal, token="t", cache_bytes=2500)
    for letter in "abcab":
        workspace = workspaces.prepare("j1-r0-e1", source(letter))
        assert (workspace / f"{letter}.txt").read_text() == letter * 1000
    assert Uploads.asked == ["/a", "/b", "/c"]
    for letter in "def":
        workspaces.prepare("j1-r0-e1", source(letter))
    kept = sum(path.stat().st_size for path in workspaces.uploads.iterdir())
    assert kept <= 4000
    workspaces.prepare("j1-r0-e1", source("f"))
    assert Uploads.asked[-1] == "/f"
    assert len(Uploads.asked) == 6


def test_preparing_again_begins_anew(tmp_path: Path, portal: str) -> None:
    workspaces = Workspaces(tmp_path, portal=portal, token="t")
    workspace = workspaces.prepare("j1-r0-e1", source("a"))
    (workspace / "half-done").touch()
    workspaces.prepare("j1-r0-e1", source("a"))
    assert [path.name for path in workspace.iterdir()] == ["a.txt"]


def test_a_portal_that_is_away_is_named(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path, portal="http://127.0.0.1:9", token="t")
    with pytest.raises(DriverError) as refusal:
        workspaces.prepare("j1-r0-e1", source("a"))
    assert refusal.value.id == "portal-unreachable"
    assert list(workspaces.uploads.iterdir()) == []


def test_removing_is_repeatable(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path, portal="http://127.0.0.1:9", token="t")
    workspaces.prepare("j1-r0-e1", Source())
    assert workspaces.keys() == ["j1-r0-e1"]
    workspaces.remove("j1-r0-e1")
    workspaces.remove("j1-r0-e1")
    assert workspaces.keys() == []
