"""Images and workspaces go in and come out again; equal bytes are stored once."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agents.checkpoints import (
    ChangedError,
    DamagedError,
    Store,
    StoreFullError,
    StoreUnreachableError,
    collect,
    fetch_image,
    fetch_tree,
    open_store,
    store_image,
    store_tree,
)
from agents.checkpoints.blobs import Folder
from agents.checkpoints.packs import Packs
from agents.checkpoints.tree import open_piece
from tests.agents.checkpoints.look import harm_chunks, look


def chunks(store: Store) -> list[str]:
    return [blob.key for blob in store.blobs.find("c/")]


def everything(store: Store) -> list[str]:
    """What lies in the store, but for the marker of the last collection."""
    found = [blob.key for top in "cmig" for blob in store.blobs.find(f"{top}/")]
    return [key for key in found if not key.startswith("g/done-")]


def test_a_replica_comes_out_as_it_went_in(
    store: Store, images: Path, workspace: Path, tmp_path: Path
) -> None:
    stored = store_image(store, images, workspace)
    fetched = fetch_image(store, stored.manifest_key, tmp_path / "i", tmp_path / "w")
    assert look(tmp_path / "i") == look(images)
    assert look(tmp_path / "w") == look(workspace)
    assert fetched.bytes_raw == stored.bytes_raw


def test_what_lay_in_the_place_is_replaced(store: Store, workspace: Path, tmp_path: Path) -> None:
    key = store_tree(store, workspace).manifest_key
    place = tmp_path / "place"
    place.mkdir()
    (place / "old").write_text("old")
    fetch_tree(store, key, place)
    assert look(place) == look(workspace)
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith(".")] == []


def test_a_durable_store_holds_the_same(images: Path, workspace: Path, tmp_path: Path) -> None:
    durable = open_store(f"file://{tmp_path}/durable", durable=True)
    key = store_image(durable, images, workspace).manifest_key
    fetch_image(open_store(str(tmp_path / "durable")), key, tmp_path / "i", tmp_path / "w")
    assert look(tmp_path / "w") == look(workspace)


def test_in_a_durable_store_nothing_has_its_name_before_it_is_on_disk(
    images: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    sync, rename = os.fsync, os.rename

    def note_sync(file: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{file}").readlink()))
        sync(file)

    def check_rename(source: str, target: str) -> None:
        top = Path(target).relative_to(tmp_path / "durable").parts[0]
        assert source in synced or top in ("i", "g")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "rename", check_rename)
    store_image(open_store(tmp_path / "durable", durable=True), images, workspace)
    assert {str(tmp_path / "durable" / top) for top in "pm"} <= synced, "their names are there too"


def test_equal_bytes_are_stored_once(store: Store, images: Path, workspace: Path) -> None:
    first = store_image(store, images, workspace)
    held = chunks(store)
    second = store_image(store, images, workspace)
    assert first.bytes_new > 0
    assert second.bytes_new == 0
    assert chunks(store) == held
    assert second.manifest_key != first.manifest_key


def test_equal_pieces_of_one_image_are_stored_once(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    block = os.urandom(256 * 1024)
    (folder / "a").write_bytes(block * 40)
    (folder / "b").write_bytes(block)
    stored = store_tree(store, folder)
    assert stored.bytes_new == len(block)
    assert len(chunks(store)) == 1


def test_zeros_cost_nothing(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "zeros").write_bytes(bytes(5_000_000))
    stored = store_tree(store, folder)
    assert stored.bytes_new == 0
    assert chunks(store) == []
    fetch_tree(store, stored.manifest_key, tmp_path / "out")
    assert (tmp_path / "out" / "zeros").read_bytes() == bytes(5_000_000)


def test_what_is_new_here_and_there_goes_into_few_files(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    with (folder / "memory").open("wb") as file:
        file.write(os.urandom(24 << 20))
    store_tree(store, folder)
    packs = len(store.blobs.find("p/"))
    with (folder / "memory").open("r+b") as file:
        for place in range(0, 24 << 20, 2 << 20):
            file.seek(place)
            file.write(os.urandom(16))
    stored = store_tree(store, folder)
    assert stored.bytes_new == 12 * 256 * 1024
    assert len(store.blobs.find("p/")) == packs + 1
    fetch_tree(store, stored.manifest_key, tmp_path / "out")
    assert (tmp_path / "out" / "memory").read_bytes() == (folder / "memory").read_bytes()


def test_what_is_too_much_to_be_claimed_at_once_is_claimed_in_rounds(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.checkpoints.dump.ROUND", 4)
    folder = tmp_path / "tree"
    folder.mkdir()
    block = os.urandom(256 * 1024)
    (folder / "memory").write_bytes(os.urandom(9 * len(block)) + block * 9)
    stored = store_tree(store, folder)
    assert stored.bytes_new == 10 * len(block)
    assert store.blobs.find("i/") == [], "no claim is left"
    fetch_tree(store, stored.manifest_key, tmp_path / "out")
    assert (tmp_path / "out" / "memory").read_bytes() == (folder / "memory").read_bytes()


def test_an_unchanged_file_is_not_read_again(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = store_tree(store, workspace)
    (workspace / "train.py").write_text("print('changed')\n")
    read: list[bytes] = []

    def opened(path: bytes) -> int:
        read.append(path)
        return open_piece(path)

    monkeypatch.setattr("agents.checkpoints.dump.open_piece", opened)
    second = store_tree(store, workspace, base=store.load(first.manifest_key))
    assert set(read) == {bytes(workspace / "train.py")}
    fetch_tree(store, second.manifest_key, tmp_path / "out")
    assert look(tmp_path / "out") == look(workspace)


def test_an_unchanged_file_is_read_again_if_its_chunks_are_gone(
    store: Store, workspace: Path, tmp_path: Path
) -> None:
    base = store.load(store_tree(store, workspace).manifest_key)
    store.blobs.delete(chunks(store))
    key = store_tree(store, workspace, base=base).manifest_key
    fetch_tree(store, key, tmp_path / "out")
    assert look(tmp_path / "out") == look(workspace)


def test_a_replica_may_run_on_once_its_workspace_is_read(
    store: Store, images: Path, workspace: Path, tmp_path: Path
) -> None:
    before = look(workspace)

    def run_on() -> None:
        (workspace / "train.py").write_text("rewritten while the images are stored")

    key = store_image(store, images, workspace, captured=run_on).manifest_key
    fetch_image(store, key, tmp_path / "i", tmp_path / "w")
    assert look(tmp_path / "w") == before


def test_progress_ends_at_the_total(store: Store, images: Path, workspace: Path) -> None:
    seen: list[tuple[int, int]] = []
    stored = store_image(store, images, workspace, progress=lambda *at: seen.append(at))
    assert max(done for done, _ in seen) == stored.bytes_raw
    assert {total for _, total in seen} == {stored.bytes_raw}


def test_a_file_that_shrinks_meanwhile_is_refused(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda *a: real(*a)[:-1])
    with pytest.raises(ChangedError):
        store_tree(store, workspace)
    assert everything(store) == []


@pytest.mark.parametrize("harm", ["cut", "alter", "remove", "swap"])
@pytest.mark.parametrize("which", ["p", "m"])
def test_a_damaged_store_is_refused_before_anything_is_restored(
    store: Store, images: Path, workspace: Path, tmp_path: Path, harm: str, which: str
) -> None:
    key = store_image(store, images, workspace).manifest_key
    victims = sorted((tmp_path / "store" / which).rglob("*"), key=lambda path: path.name)
    victim = next(path for path in victims if path.is_file())
    data = victim.read_bytes()
    if harm == "cut":
        victim.write_bytes(data[: len(data) // 2])
    elif harm == "alter":
        victim.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
    elif harm == "swap":
        victim.write_bytes(next(p for p in victims[::-1] if p.is_file()).read_bytes()[::-1])
    else:
        victim.unlink()
    place = tmp_path / "w"
    place.mkdir()
    (place / "mine").write_text("untouched")
    with pytest.raises(DamagedError) as caught:
        fetch_image(store, key, tmp_path / "i", place)
    assert caught.value.id == "image-damaged"
    assert (place / "mine").read_text() == "untouched"
    assert not (tmp_path / "i").exists()
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith(".")] == []


def test_a_damaged_chunk_is_written_anew_by_the_next_store(
    store: Store, workspace: Path, tmp_path: Path
) -> None:
    key = store_tree(store, workspace).manifest_key
    harm_chunks(tmp_path / "store")
    with pytest.raises(DamagedError):
        fetch_tree(Store("another process", Packs(tmp_path / "store")), key, tmp_path / "out")
    store_tree(store, workspace)
    fetch_tree(store, key, tmp_path / "out")
    assert look(tmp_path / "out") == look(workspace)


@pytest.mark.parametrize("key", ["", "nothing", "../../etc/passwd", "0" * 64])
def test_an_unknown_key_is_refused(store: Store, tmp_path: Path, key: str) -> None:
    with pytest.raises(DamagedError):
        fetch_tree(store, key, tmp_path / "out")


def test_a_bare_tree_cannot_be_restored_as_a_replica(
    store: Store, workspace: Path, tmp_path: Path
) -> None:
    key = store_tree(store, workspace).manifest_key
    with pytest.raises(DamagedError, match="no memory"):
        fetch_image(store, key, tmp_path / "i", tmp_path / "w")


def test_a_full_disk_leaves_nothing_half_written(
    store: Store, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "more").write_bytes(os.urandom(3_000_000))
    held = look(workspace)
    room = 1_000_000
    real = os.write

    def write(file: int, data: bytes) -> int:
        nonlocal room
        room -= len(data)
        if room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, data)

    monkeypatch.setattr("agents.checkpoints.blobs.os.write", write)
    with pytest.raises(StoreFullError) as caught:
        store_tree(store, workspace)
    assert caught.value.id == "disk-full"
    monkeypatch.undo()
    assert list((tmp_path / "store" / "m").glob("*")) == []
    assert list((tmp_path / "store").rglob(".*")) == []
    assert look(workspace) == held
    store_tree(store, workspace)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_really_full_file_system_is_told_and_given_back(workspace: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tidepool-test", str(small)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount a file system")
    try:
        store = open_store(small / "store")
        key = store_tree(store, workspace).manifest_key
        held = everything(store)
        (workspace / "huge").write_bytes(os.urandom(4_000_000))
        with pytest.raises(StoreFullError):
            store_tree(store, workspace)
        assert everything(store) == held
        with pytest.raises(StoreFullError):
            fetch_tree(store, key, small / "out" / "again")
            fetch_tree(store, key, small / "out" / "and again")
            fetch_tree(store, key, small / "out" / "and once more")
        assert list((small / "out").glob(".*")) == []
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_failed_store_takes_back_its_own_chunks_only(
    store: Store, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = store_tree(store, workspace).manifest_key
    held = everything(store)
    (workspace / "new").write_bytes(os.urandom(100_000))

    def fail(self: Folder, key: str, data: bytes) -> None:
        raise StoreUnreachableError("gone")

    monkeypatch.setattr(Folder, "commit", fail)
    with pytest.raises(StoreUnreachableError):
        store_tree(store, workspace)
    monkeypatch.undo()
    assert everything(store) == held
    fetch_tree(store, key, tmp_path / "out")


def test_a_store_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnreachableError) as caught:
        open_store(tmp_path / "file" / "store")
    assert caught.value.id == "store-unreachable"


def test_a_pack_cut_short_by_a_crash_counts_as_missing(
    store: Store, workspace: Path, tmp_path: Path
) -> None:
    key = store_tree(store, workspace).manifest_key
    victim = max((tmp_path / "store" / "p").iterdir(), key=lambda path: path.stat().st_size)
    data = victim.read_bytes()
    victim.unlink()
    victim.with_name("other").write_bytes(data[: len(data) // 2])
    store_tree(store, workspace)
    fetch_tree(store, key, tmp_path / "out")


def test_half_written_files_of_a_killed_store_are_tidied(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "store" / "c" / "ab"
    folder.mkdir(parents=True)
    half = folder / ".abcd.1.1"
    half.write_bytes(b"half")
    collect(store, [], now=half.stat().st_mtime + 60, grace_s=60)
    assert half.exists()
    collect(store, [], now=half.stat().st_mtime + 7200, grace_s=60)
    assert not half.exists()


def test_a_vanished_store_is_told(store: Store, workspace: Path, tmp_path: Path) -> None:
    key = store_tree(store, workspace).manifest_key
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(DamagedError):
        fetch_tree(store, key, tmp_path / "out")
