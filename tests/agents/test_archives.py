"""An archive is unpacked into the workspace and nowhere else, or refused and nothing is left."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from agents.archives import ArchiveError, unpack


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "below" / "workspace"
    folder.mkdir(parents=True)
    return folder


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def pack(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("a.tar", "w"),
        ("A.TAR.GZ", "w:gz"),
        ("a.tgz", "w:gz"),
        ("a.tar.bz2", "w:bz2"),
        ("a.txz", "w:xz"),
    ],
)
def test_a_tar_archive_is_unpacked(tmp_path: Path, workspace: Path, name: str, mode: str) -> None:
    script = member("./src/run.sh")
    script.mode = 0o4755
    archive = pack(tmp_path / "upload", (script, b"#!/bin/sh"), (member("данные"), b"1"), mode=mode)
    unpacked = unpack(archive, workspace, name)
    assert files(workspace) == {"src/run.sh": b"#!/bin/sh", "данные": b"1"}
    assert (unpacked.files, unpacked.bytes) == (2, 10)
    assert stat.S_IMODE((workspace / "src" / "run.sh").stat().st_mode) == 0o755


def test_a_zip_archive_is_unpacked_with_its_links(tmp_path: Path, workspace: Path) -> None:
    with zipfile.ZipFile(tmp_path / "upload", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("src/train.py", "print(1)")
        archive.writestr("empty/", "")
        link = zipfile.ZipInfo("main.py")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "src/train.py")
    unpack(tmp_path / "upload", workspace, "code.zip")
    assert (workspace / "main.py").read_text() == "print(1)"
    assert (workspace / "main.py").is_symlink()
    assert (workspace / "empty").is_dir()


@pytest.mark.parametrize("name", ["train.py", "model.npz", "../../train.py", "C:\\tmp\\train.py"])
def test_any_other_file_is_copied_by_its_last_name(
    tmp_path: Path, workspace: Path, name: str
) -> None:
    (tmp_path / "upload").write_bytes(b"content")
    unpack(tmp_path / "upload", workspace, name)
    assert files(workspace) == {name.replace("\\", "/").rpartition("/")[2]: b"content"}
    assert files(tmp_path / "below") == {f"workspace/{next(iter(files(workspace)))}": b"content"}


def test_links_within_the_workspace_are_kept(tmp_path: Path, workspace: Path) -> None:
    archive = pack(
        tmp_path / "upload",
        (member("a/b/file"), b"x"),
        (member("a/up", tarfile.SYMTYPE, "../a/b/file"), b""),
        (member("same", tarfile.LNKTYPE, "a/b/file"), b""),
    )
    unpack(archive, workspace, "a.tar")
    assert files(workspace) == {"a/b/file": b"x", "a/up": b"x", "same": b"x"}


SYMLINK, HARDLINK = tarfile.SYMTYPE, tarfile.LNKTYPE


@pytest.mark.parametrize(
    "members",
    [
        [("../evil", b"0", "")],
        [("/etc/evil", b"0", "")],
        [("a/../../evil", b"0", "")],
        [("..\\evil", b"0", "")],
        [("link", SYMLINK, "/etc")],
        [("link", SYMLINK, "../..")],
        [("a/link", SYMLINK, "../../evil")],
        [("link", SYMLINK, "."), ("link/evil", b"0", "")],
        [("link", HARDLINK, "/etc/passwd")],
        [("link", HARDLINK, "../secret")],
        [("s", SYMLINK, "a"), ("a", b"0", ""), ("h", HARDLINK, "s")],
        # Each target stays inside by its letters; the second leads out through the first.
        [("a/b/root", SYMLINK, "../.."), ("out", SYMLINK, "a/b/root/../..")],
    ],
)
def test_what_leads_out_of_the_workspace_is_refused(
    tmp_path: Path, workspace: Path, members: list[tuple[str, bytes, str]]
) -> None:
    (tmp_path / "below" / "secret").write_text("secret")
    (workspace / "mine").write_text("mine")
    archive = pack(
        tmp_path / "upload",
        (member("good"), b"good"),
        *((member(name, kind, target), b"") for name, kind, target in members),
    )
    with pytest.raises(ArchiveError) as caught:
        unpack(archive, workspace, "a.tar")
    assert caught.value.id == "archive-escapes"
    assert files(tmp_path / "below") == {"secret": b"secret", "workspace/mine": b"mine"}
    assert [path.name for path in workspace.iterdir()] == ["mine"]


def test_a_zip_that_leads_out_is_refused(tmp_path: Path, workspace: Path) -> None:
    with zipfile.ZipFile(tmp_path / "upload", "w") as archive:
        archive.writestr("../evil", "evil")
    with pytest.raises(ArchiveError) as caught:
        unpack(tmp_path / "upload", workspace, "a.zip")
    assert caught.value.id == "archive-escapes"
    assert files(tmp_path / "below") == {}


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_refused(tmp_path: Path, workspace: Path, kind: bytes) -> None:
    archive = pack(tmp_path / "upload", (member("null", kind), b""))
    with pytest.raises(ArchiveError) as caught:
        unpack(archive, workspace, "a.tar")
    assert caught.value.id == "archive-device"


def test_too_many_files_are_refused(tmp_path: Path, workspace: Path) -> None:
    archive = pack(tmp_path / "upload", *((member(str(number)), b"") for number in range(11)))
    with pytest.raises(ArchiveError, match="more than 10 files") as caught:
        unpack(archive, workspace, "a.tar", max_files=10)
    assert caught.value.id == "archive-too-large"
    assert list(workspace.iterdir()) == []


def test_a_small_archive_of_many_bytes_is_refused(tmp_path: Path, workspace: Path) -> None:
    with zipfile.ZipFile(tmp_path / "upload", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(50_000_000))
    with pytest.raises(ArchiveError) as caught:
        unpack(tmp_path / "upload", workspace, "a.zip", max_bytes=10_000_000)
    assert caught.value.id == "archive-too-large"
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.xz", "a.zip"])
@pytest.mark.parametrize("content", [b"", b"rubbish" * 100])
def test_what_is_no_archive_is_refused(
    tmp_path: Path, workspace: Path, name: str, content: bytes
) -> None:
    (tmp_path / "upload").write_bytes(content)
    with pytest.raises(ArchiveError) as caught:
        unpack(tmp_path / "upload", workspace, name)
    assert caught.value.id == "archive-damaged"


@pytest.mark.parametrize(("name", "mode"), [("a.tar", "w"), ("a.tgz", "w:gz"), ("a.txz", "w:xz")])
def test_an_archive_cut_short_is_refused(
    tmp_path: Path, workspace: Path, name: str, mode: str
) -> None:
    archive = pack(tmp_path / "upload", (member("a"), os.urandom(100_000)), mode=mode)
    archive.write_bytes(archive.read_bytes()[:50_000])
    with pytest.raises(ArchiveError) as caught:
        unpack(archive, workspace, name)
    assert caught.value.id == "archive-damaged"
    assert list(workspace.iterdir()) == []


def test_a_name_that_is_both_a_file_and_a_folder_is_refused(
    tmp_path: Path, workspace: Path
) -> None:
    archive = pack(tmp_path / "upload", (member("a/b"), b"1"), (member("a"), b"2"))
    with pytest.raises(ArchiveError) as caught:
        unpack(archive, workspace, "a.tar")
    assert caught.value.id == "archive-damaged"


def test_a_later_file_replaces_an_earlier_one(tmp_path: Path, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"0")
    archive = pack(tmp_path / "upload", (member("a"), b"1"), (member("a"), b"2"))
    unpack(archive, workspace, "a.tar")
    assert files(workspace) == {"a": b"2"}
