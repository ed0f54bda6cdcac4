"""A distant store answers like a local one, is asked little, and a node keeps copies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import fsspec
import pytest

from agents.checkpoints import (
    CheckpointError,
    DamagedError,
    Store,
    StoreUnreachableError,
    collect,
    fetch_image,
    fetch_tree,
    open_store,
    store_image,
    store_tree,
)
from agents.checkpoints.cache import Cached
from agents.checkpoints.remote import Remote
from agents.checkpoints.store import Store as AnyStore
from tests.agents.checkpoints.look import look


class Counted(Remote):
    """A distant store that remembers what it was asked for."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.read: list[str] = []
        self.written: list[str] = []
        self.listed: list[str] = []

    def get(self, keys: Sequence[str]) -> list[bytes | None]:
        self.read += [key for key in keys if key.startswith("c/")]
        return super().get(keys)

    def put(self, blobs: Mapping[str, bytes]) -> None:
        self.written += [key for key in blobs if key.startswith("c/")]
        super().put(blobs)

    def _learn(self, folder: str) -> None:
        self.listed.append(folder)
        super()._learn(folder)


@pytest.fixture
def url() -> Iterator[str]:
    name = f"memory://tidepool-{os.urandom(6).hex()}/chunks"
    yield name
    system, path = fsspec.url_to_fs(name)
    if system.exists(path):
        system.rm(path, recursive=True)


def test_a_replica_goes_to_another_node_and_comes_out_whole(
    url: str, images: Path, workspace: Path, tmp_path: Path
) -> None:
    key = store_image(open_store(url), images, workspace).manifest_key
    fetch_image(open_store(url), key, tmp_path / "i", tmp_path / "w")
    assert look(tmp_path / "i") == look(images)
    assert look(tmp_path / "w") == look(workspace)


def test_only_new_chunks_are_sent_by_any_node(url: str, workspace: Path) -> None:
    first, second = Counted(url), Counted(url)
    store_tree(Store(url, first), workspace)
    (workspace / "new").write_bytes(b"new")
    assert store_tree(Store(url, second), workspace).bytes_new == 3
    assert len(second.written) == 1


def test_chunks_known_to_be_there_cost_no_request(url: str, workspace: Path) -> None:
    blobs = Counted(url)
    store_tree(Store(url, blobs), workspace)
    blobs.listed.clear()
    blobs.written.clear()
    store_tree(Store(url, blobs), workspace)
    assert (blobs.listed, blobs.written) == ([], [])


def test_a_node_forgets_what_a_collection_elsewhere_deleted(
    url: str, workspace: Path, tmp_path: Path
) -> None:
    store = open_store(url)
    store_tree(store, workspace)
    elsewhere = open_store(url)
    assert collect(elsewhere, [], now=time.time() + 9_999, grace_s=60).chunks > 0
    key = store_tree(store, workspace).manifest_key
    fetch_tree(elsewhere, key, tmp_path / "out")
    assert look(tmp_path / "out") == look(workspace)


def test_a_node_fetches_only_chunks_it_lacks(url: str, workspace: Path, tmp_path: Path) -> None:
    far = open_store(url)
    first = store_tree(far, workspace).manifest_key
    (workspace / "new").write_bytes(b"new")
    second = store_tree(far, workspace).manifest_key
    blobs = Counted(url)
    node = AnyStore(url, Cached(blobs, tmp_path / "cache", 1 << 30))
    fetch_tree(node, first, tmp_path / "1")
    held = len(blobs.read)
    fetch_tree(node, second, tmp_path / "2")
    assert len(blobs.read) == held + 1
    again = AnyStore(url, Cached(blobs, tmp_path / "cache", 1 << 30))
    fetch_tree(again, second, tmp_path / "3")
    assert len(blobs.read) == held + 1
    assert look(tmp_path / "3") == look(workspace)


def test_a_node_keeps_what_it_stored_itself(url: str, workspace: Path, tmp_path: Path) -> None:
    blobs = Counted(url)
    node = AnyStore(url, Cached(blobs, tmp_path / "cache", 1 << 30))
    fetch_tree(node, store_tree(node, workspace).manifest_key, tmp_path / "out")
    assert blobs.read == []


def test_the_cache_stays_within_its_limit_and_keeps_what_is_used(tmp_path: Path, url: str) -> None:
    cached = Cached(Remote(url), tmp_path / "cache", 10_000)
    blobs = {f"c/{number:02x}/{number:064x}": bytes(3_000) for number in range(4)}
    first, *others = blobs
    cached.put({first: blobs[first]})
    for key in others:
        cached.get([first])
        cached.put({key: blobs[key]})
    kept = [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert len(kept) == 3
    assert first.rpartition("/")[2] in kept
    reopened = Cached(Remote(url), tmp_path / "cache", 3_000)
    assert len([path for path in (tmp_path / "cache").rglob("*") if path.is_file()]) == 1
    assert reopened.get(others) == [blobs[key] for key in others]


def test_a_damaged_copy_is_fetched_anew(url: str, workspace: Path, tmp_path: Path) -> None:
    node = open_store(url, cache=tmp_path / "cache")
    key = store_tree(node, workspace).manifest_key
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            path.write_bytes(b"rubbish")
    fetch_tree(node, key, tmp_path / "out")
    assert look(tmp_path / "out") == look(workspace)


def test_a_damaged_chunk_far_away_is_refused(url: str, workspace: Path, tmp_path: Path) -> None:
    node = open_store(url, cache=tmp_path / "cache")
    key = store_tree(open_store(url), workspace).manifest_key
    victim = node.blobs.find("c/")[0].key
    Remote(url).put({victim: b"rubbish"})
    with pytest.raises(DamagedError):
        fetch_tree(node, key, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_cache_that_cannot_be_written_is_passed_by(
    url: str, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = open_store(url, cache=tmp_path / "cache")

    def full(blobs: Mapping[str, bytes]) -> None:
        raise CheckpointError("full")

    monkeypatch.setattr(node.blobs._near, "put", full)  # type: ignore[attr-defined]
    fetch_tree(node, store_tree(node, workspace).manifest_key, tmp_path / "out")
    assert look(tmp_path / "out") == look(workspace)


def test_a_login_in_its_address_is_never_told() -> None:
    store = open_store("memory://ana:hush@tidepool-nowhere/chunks")
    assert store.url == "memory://tidepool-nowhere/chunks"
    with pytest.raises(DamagedError) as refusal:
        store.load("ab" * 32)
    assert "hush" not in str(refusal.value)


def test_a_store_of_an_unknown_kind_says_so() -> None:
    with pytest.raises((StoreUnreachableError, ValueError)):
        open_store("nosuchprotocol://somewhere/chunks")
