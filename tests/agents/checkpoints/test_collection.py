"""A collection deletes what nothing needs, and never what a store in progress relies on."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import blake3
import pytest

from agents.checkpoints import (
    Store,
    StoreUnreachableError,
    collect,
    fetch_tree,
    open_store,
    store_tree,
)
from agents.checkpoints.blobs import Folder, chunk_key
from agents.checkpoints.collection import ROUND_S, SILENCE_S
from agents.checkpoints.manifest import Entry, Extent, Manifest
from agents.checkpoints.packs import Packs
from agents.checkpoints.session import Session
from tests.agents.checkpoints.look import look

LATER = 10_000.0


def another(where: Path | str) -> Store:
    """Open a store as another process would, with a memory of its own."""
    return Store("", Packs(where)) if isinstance(where, Path) else open_store(where)


def tree(folder: Path, *parts: bytes) -> Path:
    folder.mkdir(parents=True)
    for number, part in enumerate(parts):
        (folder / str(number)).write_bytes(part)
    return folder


def chunks(store: Store) -> set[str]:
    store.blobs.forget()
    return {blob.key for blob in store.blobs.find("c/")}


def bare(digest: bytes) -> Manifest:
    entries = [
        Entry(path=b"", kind="folder", mode=0o755),
        Entry(path=b"f", kind="file", mode=0o644, size=6, extents=[Extent(0, 6, digest)]),
    ]
    return Manifest(
        nonce=os.urandom(4).hex(),
        machine="m",
        created_at=0.0,
        bytes_raw=6,
        trees={"workspace": entries},
    )


@pytest.fixture
def garbage(store: Store, tmp_path: Path) -> bytes:
    """The digest of a chunk that no manifest names."""
    digest: bytes = blake3.blake3(b"waste!").digest()
    with Session(store) as session:
        session.put(dict.fromkeys(session.missing([digest]), b"waste!"))
        session.commit(bare(digest))
    store.blobs.delete([blob.key for blob in store.blobs.find("m/")])
    return digest


def test_what_only_dead_manifests_name_is_deleted(store: Store, tmp_path: Path) -> None:
    shared, own, other = (os.urandom(50_000) for _ in range(3))
    live = store_tree(store, tree(tmp_path / "a", shared, own)).manifest_key
    store_tree(store, tree(tmp_path / "b", shared, other))
    collected = collect(store, [live], now=time.time() + LATER, grace_s=60)
    assert (collected.chunks, collected.manifests) == (1, 1)
    assert collected.bytes >= len(other)
    fetch_tree(store, live, tmp_path / "out")
    assert look(tmp_path / "out") == look(tmp_path / "a")
    assert collect(store, [live], now=time.time() + LATER, grace_s=60).chunks == 0
    assert collect(store, [], now=time.time() + LATER, grace_s=60).chunks == 2
    assert chunks(store) == set()


def test_a_manifest_that_is_not_yet_named_is_kept_for_the_grace(
    store: Store, tmp_path: Path
) -> None:
    store_tree(store, tree(tmp_path / "a", b"content"))
    assert collect(store, [], now=time.time(), grace_s=60).manifests == 0
    assert len(chunks(store)) == 1
    assert collect(store, [], now=time.time() + 61, grace_s=60).manifests == 1
    assert chunks(store) == set()


def test_what_a_store_in_progress_reuses_is_spared(store: Store, garbage: bytes) -> None:
    with Session(store) as session:
        assert session.missing([garbage]) == set()
        assert collect(store, [], now=time.time(), grace_s=60).chunks == 0
        key = session.commit(bare(garbage))
    assert collect(store, [key], now=time.time() + LATER, grace_s=60).chunks == 0
    assert chunks(store) == {chunk_key(garbage)}


def test_what_a_store_committed_in_mid_collection_is_spared(
    store: Store, garbage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store begins and ends between the collection's list of manifests and its round."""
    real = Folder.put

    def put(self: Folder, blobs: dict[str, bytes]) -> None:
        if any(key.startswith("g/") for key in blobs):
            monkeypatch.undo()
            with Session(store) as session:
                assert session.missing([garbage]) == set()
                session.commit(bare(garbage))
        real(self, blobs)

    monkeypatch.setattr(Folder, "put", put)
    assert collect(store, [], now=time.time(), grace_s=60).chunks == 0
    assert chunks(store) == {chunk_key(garbage)}


def test_a_store_that_comes_too_late_waits_and_writes_anew(
    store: Store, garbage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store claims after the collection has read the claims: its chunk is about to go."""
    real = Packs.delete
    waited = threading.Event()
    found: list[set[bytes]] = []

    def late() -> None:
        with Session(store, pause=lambda _: waited.set()) as session:
            missing = session.missing([garbage])
            found.append(missing)
            session.put(dict.fromkeys(missing, b"waste!"))
            session.commit(bare(garbage))

    thread = threading.Thread(target=late)

    def delete(self: Packs, keys: list[str]) -> None:
        if chunk_key(garbage) in keys:
            monkeypatch.undo()
            thread.start()
            assert waited.wait(60)
        real(self, keys)

    monkeypatch.setattr(Packs, "delete", delete)
    assert collect(store, [], now=time.time(), grace_s=60).chunks == 1
    thread.join(60)
    assert found == [{garbage}]
    assert chunks(store) == {chunk_key(garbage)}


def test_a_round_left_by_a_dead_collection_stops_nobody(
    store: Store, garbage: bytes, tmp_path: Path
) -> None:
    store.blobs.put({"g/dead": garbage})
    old = time.time() - ROUND_S - 60
    os.utime(tmp_path / "store" / "g" / "dead", (old, old))
    with Session(store, pause=_no_pause) as session:
        session.missing([garbage])
    collect(store, [], now=time.time(), grace_s=60)
    assert [blob.key for blob in store.blobs.find("g/") if "dead" in blob.key] == []


def _no_pause(_: float) -> None:
    raise AssertionError("there was nothing to wait for")


def test_a_silent_store_is_given_up_and_cannot_commit(store: Store, garbage: bytes) -> None:
    with pytest.raises(StoreUnreachableError, match="so long"), Session(store) as session:
        session.missing([garbage])
        assert collect(store, [], now=time.time() + SILENCE_S + 60, grace_s=60).chunks == 1
        session.commit(bare(garbage))
    assert [blob.key for top in "mi" for blob in store.blobs.find(f"{top}/")] == []


def test_a_damaged_manifest_stops_no_collection(store: Store, tmp_path: Path) -> None:
    live = store_tree(store, tree(tmp_path / "a", b"one")).manifest_key
    damaged = store_tree(store, tree(tmp_path / "b", b"two")).manifest_key
    (tmp_path / "store" / "m" / damaged).write_bytes(b"rubbish")
    assert collect(store, [live, damaged], now=time.time() + LATER, grace_s=60).chunks == 1
    fetch_tree(store, live, tmp_path / "out")


@pytest.mark.parametrize("url", ["folder", "memory"])
def test_stores_and_collections_at_once_lose_nothing(url: str, tmp_path: Path) -> None:
    """Threads store and drop trees of a few common parts while others collect all the time."""
    where = tmp_path / "store" if url == "folder" else f"memory://race-{os.urandom(4).hex()}"
    first = another(where)
    parts = [os.urandom(9_000) for _ in range(12)]
    stopped = threading.Event()
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        die = random.Random(seed)
        store = another(where)
        try:
            for number in range(12):
                folder = tree(tmp_path / f"{seed}-{number}", *die.sample(parts, 4))
                key = store_tree(store, folder).manifest_key
                fetch_tree(store, key, tmp_path / f"out-{seed}-{number}")
                store.blobs.delete([f"m/{key}"])
        except BaseException as error:
            failures.append(error)

    def sweep() -> None:
        store = another(where)
        try:
            while not stopped.is_set():
                collect(store, [], now=time.time(), grace_s=LATER)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    sweepers = [threading.Thread(target=sweep) for _ in range(2)]
    for thread in [*workers, *sweepers]:
        thread.start()
    for thread in workers:
        thread.join()
    stopped.set()
    for thread in sweepers:
        thread.join()
    assert failures == []
    collect(first, [], now=time.time() + LATER, grace_s=60)
    assert chunks(first) == set()
