"""The prefix is filled once, by one at a time, and a machine where that cannot be is told why."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Barrier, Thread

import pytest

from agents.toolchain import __main__ as command
from agents.toolchain import fetch as fetching
from agents.toolchain import mirror
from agents.toolchain.fetch import fetch
from agents.toolchain.mirror import Source, UnableError
from tests.agents.toolchain.test_programs import install


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Root on a machine that has apt and no containers."""
    system = tmp_path / "system"
    for name in ("apt-get", "dpkg-deb"):
        install(system, name, "1")
    patchelf = install(tmp_path, "patchelf", "1")
    monkeypatch.setattr(fetching, "_patchelf", lambda *_: patchelf)
    monkeypatch.setenv("PATH", f"{system}")
    monkeypatch.setattr("agents.toolchain.programs.SYSTEM_PATH", "")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(fetching, "own_source", lambda: Source("http://mirror.invalid", "calm"))
    return system


def test_both_are_fetched_once_though_two_ask(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fetched: list[tuple[str, str]] = []

    def download(names: list[str], *, suite: str, folder: Path, **_: object) -> None:
        fetched.append((names[0], suite))
        folder.mkdir(parents=True)
        (folder / "name").write_text(names[0])

    def unpack(folder: Path, into: Path) -> None:
        name = (folder / "name").read_text()
        install(into / "usr" / "sbin", name, "4.2.1")
        install(into / "usr" / "lib" / "x", "ld-linux-x.so.2", "1")

    monkeypatch.setattr(fetching, "download", download)
    monkeypatch.setattr(fetching, "unpack", unpack)
    together = Barrier(2)
    complete: list[bool] = []

    def ask() -> None:
        together.wait()
        complete.append(fetch(tmp_path / "node", lambda _: None).complete)

    threads = [Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert complete == [True, True]
    assert fetched == [("runc", "calm"), ("criu", fetching.NEWEST_SUITE)]
    assert sorted(path.name for path in (tmp_path / "node" / "bin").iterdir()) == ["criu", "runc"]


def test_without_root_or_apt_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bare_machine: Path
) -> None:
    (bare_machine / "apt-get").unlink()
    with pytest.raises(UnableError, match="apt-get is not on this machine"):
        fetch(tmp_path / "node", print)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UnableError, match="need root"):
        fetch(tmp_path / "node", print)
    assert not (tmp_path / "node").exists()


def test_the_command_states_the_reason_and_succeeds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["toolchain", "--prefix", str(tmp_path)])
    command.main()
    assert "will not be movable on this machine: containers need root" in capsys.readouterr().out


def test_a_failed_download_leaves_nothing_that_looks_complete(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise UnableError("apt-get failed: no route to the mirror")

    monkeypatch.setattr(fetching, "download", refuse)
    with pytest.raises(UnableError, match="no route"):
        fetch(tmp_path / "node", lambda _: None)
    assert not (tmp_path / "node" / "bin").exists()


def test_the_mirror_is_the_machines_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text('ID=debian\nVERSION_CODENAME="calm"\n')
    monkeypatch.setattr(mirror, "OS_RELEASE", tmp_path / "os-release")
    listed = (
        "http://far.invalid/security/|calm-security|main\nhttp://near.invalid/debian/|calm|main\n"
    )
    monkeypatch.setattr(mirror, "run", lambda command: listed)
    assert mirror.own_source() == Source("http://near.invalid/debian", "calm")
    monkeypatch.setattr(mirror, "run", lambda command: "http://near.invalid/debian/|other|main\n")
    with pytest.raises(UnableError, match="calm"):
        mirror.own_source()


def test_a_failing_command_gives_its_last_words() -> None:
    with pytest.raises(UnableError, match="sh failed: E: gone"):
        mirror.run(["/bin/sh", "-c", "echo 'E: gone' >&2; exit 100"])
    with pytest.raises(UnableError, match="no-such-program is not on this machine"):
        mirror.run(["no-such-program"])
