"""Any tree of files comes back with its names, modes, times, links and holes."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.checkpoints import Store, fetch_tree, open_store, store_tree
from tests.agents.checkpoints.look import look

names = st.binary(min_size=1, max_size=12).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)
contents = st.one_of(
    st.binary(max_size=200),
    st.integers(1, 600_000).map(bytes),
    st.tuples(st.binary(min_size=1, max_size=9), st.integers(1, 60_000)).map(lambda p: p[0] * p[1]),
)
leaves = st.one_of(
    st.tuples(st.just("file"), contents, st.integers(0o400, 0o777)),
    st.tuples(st.just("link"), names, st.just(0)),
)
trees = st.recursive(
    st.dictionaries(names, leaves, max_size=4),
    lambda inner: st.dictionaries(names, st.one_of(leaves, inner), max_size=4),
    max_leaves=12,
)


def make(folder: Path, tree: dict[bytes, Any]) -> None:
    for name, item in tree.items():
        path = folder / os.fsdecode(name)
        if isinstance(item, dict):
            path.mkdir()
            make(path, item)
        elif item[0] == "link":
            path.symlink_to(os.fsdecode(item[1]))
        else:
            path.write_bytes(item[1])
            path.chmod(item[2])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees)
def test_any_tree_comes_back(tree: dict[bytes, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        make(folder / "in", tree)
        store = open_store(folder / "store")
        key = store_tree(store, folder / "in").manifest_key
        fetch_tree(store, key, folder / "out")
        assert look(folder / "out") == look(folder / "in")


def test_names_in_any_script_and_in_none(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("данные.csv", "模型", "e\u0301té", "🌊", "new\nline", " "):
        (folder / name).write_text(name)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe")).write_text("not UTF-8")
    key = store_tree(store, folder).manifest_key
    fetch_tree(store, key, tmp_path / "out")
    assert look(tmp_path / "out") == look(folder)


def test_a_huge_file_of_holes_stays_one(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    size = 1 << 40
    with (folder / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(1 << 39)
        file.write(b"middle")
        file.truncate(size)
    stored = store_tree(store, folder)
    assert stored.bytes_raw < 2_000_000
    fetch_tree(store, stored.manifest_key, tmp_path / "out")
    out = tmp_path / "out" / "sparse"
    assert out.stat().st_size == size
    assert out.stat().st_blocks * 512 < 2_000_000
    with out.open("rb") as file:
        assert file.read(6) == b"begin\0"
        file.seek((1 << 39) - 1)
        assert file.read(8) == b"\0middle\0"


def test_links_are_kept_and_never_followed(store: Store, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("not yours")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "out").symlink_to(secret)
    (folder / "dangling").symlink_to("nowhere")
    stored = store_tree(store, folder)
    assert stored.bytes_raw == 0
    fetch_tree(store, stored.manifest_key, tmp_path / "again")
    assert (tmp_path / "again" / "out").readlink() == secret


def test_hard_links_pipes_and_modes_are_kept_and_sockets_left_out(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    (folder / "closed").mkdir(parents=True)
    (folder / "closed" / "a").write_text("same")
    os.link(folder / "closed" / "a", folder / "b")
    os.mkfifo(folder / "pipe")
    (folder / "closed").chmod(0o500)
    folder.chmod(0o750)
    monkeypatch.chdir(folder)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        key = store_tree(store, folder).manifest_key
    fetch_tree(store, key, tmp_path / "out")
    out = tmp_path / "out"
    assert (out / "closed" / "a").stat().st_ino == (out / "b").stat().st_ino
    assert stat.S_ISFIFO((out / "pipe").stat().st_mode)
    assert stat.S_IMODE((out / "closed").stat().st_mode) == 0o500
    assert stat.S_IMODE(out.stat().st_mode) == 0o750
    assert not (out / "socket").exists()


def test_owners_are_kept(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "mine").write_text("x")
    owner = (1234, 5678) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(folder / "mine", *owner)
    os.chown(folder, *owner)
    fetch_tree(store, store_tree(store, folder).manifest_key, tmp_path / "out")
    found = (tmp_path / "out" / "mine").stat()
    assert (found.st_uid, found.st_gid) == owner
    assert (tmp_path / "out").stat().st_uid == owner[0]
