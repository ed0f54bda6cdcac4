"""A git source is cloned at its ref, without hooks, prompts or schemes that were not allowed."""

from __future__ import annotations

import http.server
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents import sources
from agents.sources import SourceError, clone

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

FILE = ("file",)


def git(folder: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "train.py").write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    git(folder, "tag", "v1")
    (folder / "train.py").write_text("2")
    git(folder, "commit", "--quiet", "-am", "two")
    git(folder, "branch", "feature/x")
    (folder / "train.py").write_text("3")
    git(folder, "commit", "--quiet", "-am", "three")
    return folder


@pytest.mark.parametrize(
    ("ref", "content"), [("", "3"), ("main", "3"), ("feature/x", "2"), ("v1", "1")]
)
def test_a_branch_or_a_tag_is_cloned_without_its_history(
    repository: Path, tmp_path: Path, ref: str, content: str
) -> None:
    workspace = tmp_path / "workspace"
    commit = clone(f"file://{repository}", ref, workspace, schemes=FILE)
    assert (workspace / "train.py").read_text() == content
    assert commit == git(repository, "rev-parse", f"{ref or 'main'}^{{commit}}")
    assert git(workspace, "-c", "safe.directory=*", "rev-list", "--count", "HEAD") == "1"


def test_a_commit_is_cloned_by_its_hash(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    wanted = git(repository, "rev-parse", "v1")
    assert clone(f"file://{repository}", wanted, tmp_path / "w", schemes=FILE) == wanted


def test_no_hook_of_the_machine_or_the_repository_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    hook = hooks / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    (tmp_path / "config").write_text(f"[core]\n\thooksPath = {hooks}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    clone(f"file://{repository}", "", tmp_path / "w", schemes=FILE)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc",
        "/etc",
        "ext::sh -c touch% /tmp/evil",
        "git@host:repository",
        "ssh://-oProxyCommand=evil/x",
        "ftp://host/x",
        "https://host/with space",
        "--upload-pack=evil",
        "",
    ],
)
def test_a_source_that_is_not_allowed_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(SourceError) as caught:
        clone(url, "main", tmp_path / "w")
    assert caught.value.id == "source-refused"
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("ref", ["--upload-pack=evil", "a b", "a..b", "a:b", "+refs/*", "a\nb"])
def test_a_ref_that_is_none_is_refused(repository: Path, tmp_path: Path, ref: str) -> None:
    with pytest.raises(SourceError) as caught:
        clone(f"file://{repository}", ref, tmp_path / "w", schemes=FILE)
    assert caught.value.id == "source-refused"


def test_a_ref_that_is_not_there_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no branch, tag or commit 'nothing'") as caught:
        clone(f"file://{repository}", "nothing", tmp_path / "w", schemes=FILE)
    assert caught.value.id == "source-no-such-ref"
    assert list((tmp_path / "w").iterdir()) == []


def test_a_repository_that_is_not_there_is_told_without_its_password(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://alice:hunter2@127.0.0.1:{taken.getsockname()[1]}/x.git"
        with pytest.raises(SourceError) as caught:
            clone(url, "", tmp_path / "w")
    assert caught.value.id == "repository-unreachable"
    assert "hunter2" not in str(caught.value)


@pytest.fixture
def answering() -> Iterator[Callable[[int], str]]:
    """Answer the URL of a server that answers everything with a status."""
    servers = []

    def serve(status: int) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/x.git"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "id"),
    [
        (401, "source-unreachable"),
        (403, "source-unreachable"),
        (404, "source-unreachable"),
        (429, "repository-unreachable"),
        (503, "repository-unreachable"),
    ],
)
def test_a_server_that_is_away_is_told_from_one_that_refuses(
    answering: Callable[[int], str], tmp_path: Path, status: int, id: str
) -> None:
    with pytest.raises(SourceError) as caught:
        clone(answering(status), "", tmp_path / "w")
    assert caught.value.id == id, str(caught.value)


@pytest.mark.parametrize(
    ("said", "away"),
    [
        ("fatal: unable to access 'x': Failed to connect to git port 443: No route to host", True),
        ("fatal: the remote end hung up unexpectedly\nfatal: early EOF", True),
        ("ssh: Could not resolve hostname git: Temporary failure in name resolution", True),
        ("ssh: Could not resolve hostname gti: Name or service not known", False),
        ("git@host: Permission denied (publickey).\nConnection closed by remote host", False),
        ("fatal: unable to update url base from redirection", False),
    ],
)
def test_what_git_says_tells_whether_it_may_pass(said: str, away: bool) -> None:
    assert sources._may_pass(said, "https://git/x.git") is away


@pytest.mark.parametrize(("errno", "away"), [(socket.EAI_AGAIN, True), (socket.EAI_NONAME, False)])
def test_a_name_that_nobody_knows_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, errno: int, away: bool
) -> None:
    def fail(*_: object) -> None:
        raise socket.gaierror(errno, "")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    said = "fatal: unable to access 'https://git/x.git/': Could not resolve host: git"
    assert sources._may_pass(said, "https://git/x.git") is away


def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # the kernel takes the connection; nobody ever reads from it
        with pytest.raises(SourceError) as caught:
            clone(
                f"http://127.0.0.1:{silent.getsockname()[1]}/x.git", "", tmp_path / "w", timeout_s=1
            )
    assert caught.value.id == "source-timeout"
