"""New enough programs are found, in the prefix first; what is missing is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.toolchain import find


def install(folder: Path, name: str, version: str) -> Path:
    """A program that only tells its version."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{name} version {version}'\n")
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def bare_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A system with nothing but its shell."""
    monkeypatch.setenv("PATH", str(tmp_path / "system"))
    monkeypatch.setattr("agents.toolchain.programs.SYSTEM_PATH", "")
    return tmp_path / "system"


def test_the_prefix_comes_first(tmp_path: Path, bare_system: Path) -> None:
    runc = install(tmp_path / "node" / "bin", "runc", "1.1.5+ds1")
    criu = install(tmp_path / "node" / "bin", "criu", "4.2.1")
    install(bare_system, "runc", "1.2.0")
    toolchain = find(tmp_path / "node")
    assert (toolchain.runc, toolchain.criu, toolchain.missing) == (runc, criu, ())
    assert toolchain.complete
    assert toolchain.path.split(":")[0] == str(criu.parent), "runc looks for criu in PATH"


def test_the_systems_own_are_used_where_new_enough(tmp_path: Path, bare_system: Path) -> None:
    runc = install(bare_system, "runc", "1.1")
    install(bare_system, "criu", "3.17.1")
    toolchain = find(tmp_path / "node")
    assert toolchain.runc == runc
    assert toolchain.criu is None
    assert toolchain.missing == ("criu 3.17.1 is older than 4.2",)


def test_what_is_absent_is_said_with_its_remedy(tmp_path: Path) -> None:
    missing = find(tmp_path / "node").missing
    assert len(missing) == 2
    assert all("make node" in reason for reason in missing)


def test_a_program_that_does_not_run_is_not_taken(tmp_path: Path, bare_system: Path) -> None:
    install(bare_system, "runc", "1.1")
    install(bare_system, "criu", "4.2").write_text("#!/bin/sh\nexit 1\n")
    assert find(tmp_path / "node").criu is None
