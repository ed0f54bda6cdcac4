"""What is packed of a folder, and what is left out."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from portal.client.archive import ignored, pack, read_pattern


def names(folder: Path) -> list[str]:
    packed, _ = pack(folder)
    with packed, tarfile.open(fileobj=packed) as archive:
        return sorted(archive.getnames())


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def make(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


@pytest.mark.parametrize(
    ("line", "name", "out"),
    [
        ("*.bin", "a.bin", True),
        ("*.bin", "deep/er/a.bin", True),
        ("*.bin", "a.bin.txt", False),
        ("/a.bin", "deep/a.bin", False),
        ("out/*.log", "out/a.log", True),
        ("out/*.log", "out/in/a.log", False),
        ("out/**/a", "out/in/deep/a", True),
        ("out/**/a", "out/a", True),
        ("**/cache", "x/y/cache", True),
        ("data?.csv", "data1.csv", True),
        ("data[!1].csv", "data1.csv", False),
        ("data[12].csv", "data1.csv", True),
        ("# a.bin", "a.bin", False),
        ("a+b", "a+b", True),
    ],
)
def test_patterns_mean_what_git_means(line: str, name: str, out: bool) -> None:
    patterns = [pattern for pattern in [read_pattern(line)] if pattern]
    assert ignored(patterns, name, is_folder=False) is out


def test_ignored_folders_are_not_even_looked_into(work: Path) -> None:
    make(work, "train.py", ".git/HEAD", "data/big.bin", "lib/__pycache__/x.pyc", "lib/a.py")
    make(work, "data.txt")
    (work / ".gitignore").write_text("data/\n")
    assert names(work) == [".gitignore", "data.txt", "lib", "lib/a.py", "train.py"]


def test_what_git_ignores_can_be_taken_back(work: Path) -> None:
    make(work, "a.bin", "b.bin")
    (work / ".gitignore").write_text("*.bin\n")
    (work / ".tidepoolignore").write_text("!a.bin\n.*ignore\n")
    assert names(work) == ["a.bin"]


def test_links_stay_links_and_none_leads_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, "work/a/real.txt", "other.txt")
    work = tmp_path / "work"
    (work / "a/near").symlink_to("real.txt")
    (work / "a/up").symlink_to("../a/real.txt")
    (work / "a/out").symlink_to("../../other.txt")
    (work / "absolute").symlink_to("/etc/passwd")
    assert names(work) == ["a", "a/near", "a/real.txt", "a/up"]
    said = capsys.readouterr().err
    assert "a/out" in said
    assert "absolute" in said


def test_nobodys_name_is_packed(work: Path) -> None:
    make(work, "a.py")
    packed, count = pack(work)
    with packed, tarfile.open(fileobj=packed) as archive:
        member = archive.getmember("a.py")
    assert (member.uid, member.uname, member.gname) == (0, "", "")
    assert count == 1
