"""Stored files are listed and downloaded one by one or all together, each byte checked."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from agents.checkpoints import (
    DamagedError,
    NotStoredError,
    Store,
    list_files,
    open_file,
    store_image,
    store_tree,
    zip_files,
)
from tests.agents.checkpoints.look import harm_chunks


@pytest.fixture
def key(store: Store, workspace: Path) -> str:
    (workspace / "data" / "пример.txt").write_text("пример")
    (workspace / "holes").write_bytes(b"a" + bytes(3_000_000) + b"z")
    (workspace / "link").symlink_to("train.py")
    os.link(workspace / "train.py", workspace / "twin.py")
    return store_tree(store, workspace).manifest_key


def test_files_are_listed_by_path(store: Store, key: str, workspace: Path) -> None:
    listed = list_files(store, key)
    assert [file.path for file in listed] == [
        "data/weights.bin",
        "data/пример.txt",
        "holes",
        "train.py",
        "twin.py",
    ]
    for file in listed:
        info = (workspace / file.path).stat()
        assert file.size == info.st_size
        assert file.mtime == pytest.approx(info.st_mtime)


def test_each_file_comes_as_it_was(store: Store, key: str, workspace: Path) -> None:
    for file in list_files(store, key):
        download = open_file(store, key, file.path)
        content = b"".join(download.content)
        assert content == (workspace / file.path).read_bytes()
        assert len(content) == download.size


@pytest.mark.parametrize("path", ["", "nothing", "data", "link", "../train.py", "/etc/passwd"])
def test_what_is_no_stored_file_is_refused(store: Store, key: str, path: str) -> None:
    with pytest.raises(NotStoredError) as caught:
        open_file(store, key, path)
    assert caught.value.id == "no-such-file"


def test_all_files_come_as_one_zip(store: Store, key: str, workspace: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(b"".join(zip_files(store, key)))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [file.path for file in list_files(store, key)]
        for name in archive.namelist():
            assert archive.read(name) == (workspace / name).read_bytes()


def test_one_folder_comes_as_a_zip(store: Store, key: str) -> None:
    with zipfile.ZipFile(io.BytesIO(b"".join(zip_files(store, key, "/data/")))) as archive:
        assert archive.namelist() == ["data/weights.bin", "data/пример.txt"]
    with pytest.raises(NotStoredError):
        zip_files(store, key, "dat")


def test_a_checkpoint_shows_its_workspace_and_not_its_memory(
    store: Store, images: Path, workspace: Path
) -> None:
    key = store_image(store, images, workspace).manifest_key
    assert [file.path for file in list_files(store, key)] == ["data/weights.bin", "train.py"]


def test_a_damaged_file_is_told_before_its_bytes_are_handed_out(
    store: Store, key: str, tmp_path: Path
) -> None:
    harm_chunks(tmp_path / "store")
    with pytest.raises(DamagedError):
        next(open_file(store, key, "data/weights.bin").content)
