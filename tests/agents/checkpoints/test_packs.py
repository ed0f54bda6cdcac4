"""Chunks of a local store share files; one can be deleted alone, and every process notices."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

import blake3
import pytest

from agents.checkpoints import StoreFullError
from agents.checkpoints.blobs import chunk_key
from agents.checkpoints.packs import Packs


def chunk(size: int = 100_000) -> tuple[str, bytes]:
    data = os.urandom(size)
    return chunk_key(blake3.blake3(data).digest()), data


def has(packs: Packs, keys: Iterable[str]) -> set[str]:
    named = {bytes.fromhex(key[5:]): key for key in keys}
    return {named[digest] for digest in packs.has(named)}


@pytest.fixture
def packs(tmp_path: Path) -> Packs:
    return Packs(tmp_path)


def files(packs: Packs) -> list[Path]:
    return list((packs.path / "p").iterdir())


def test_chunks_put_together_share_a_file(packs: Packs) -> None:
    chunks = dict(chunk() for _ in range(5))
    packs.put(chunks)
    assert len(files(packs)) == 1
    assert packs.get(list(chunks)) == list(chunks.values())
    assert has(packs, chunks) == set(chunks)
    assert {blob.key: blob.size for blob in packs.find("c/")} == dict.fromkeys(chunks, 100_000)


def test_other_keys_are_files_of_their_own(packs: Packs) -> None:
    key, data = chunk()
    packs.put({"m/abc": b"manifest", key: data})
    assert packs.get(["m/abc", key, "m/none", chunk()[0]]) == [b"manifest", data, None, None]
    assert [blob.key for blob in packs.find("m/")] == ["m/abc"]
    packs.delete(["m/abc"])
    assert packs.get(["m/abc", key]) == [None, data]


def test_another_process_sees_what_was_put(packs: Packs, tmp_path: Path) -> None:
    other = Packs(tmp_path)
    assert other.find("c/") == []
    key, data = chunk()
    packs.put({key: data})
    assert other.get([key]) == [data]
    assert has(other, [key]) == {key}


def test_a_deleted_chunk_is_gone_and_its_room_given_back(packs: Packs, tmp_path: Path) -> None:
    chunks = dict(chunk(1_000_000) for _ in range(4))
    packs.put(chunks)
    kept, *gone = chunks
    packs.delete(gone)
    assert has(packs, chunks) == {kept}
    assert packs.get([kept, *gone]) == [chunks[kept], None, None, None]
    assert files(packs)[0].stat().st_blocks * 512 < 1_100_000
    assert has(Packs(tmp_path), chunks) == {kept}
    packs.delete([kept])
    assert files(packs) == []


def test_another_process_notices_what_is_gone(packs: Packs, tmp_path: Path) -> None:
    chunks = dict(chunk() for _ in range(3))
    packs.put(chunks)
    first, second, third = chunks
    other = Packs(tmp_path)
    assert has(other, chunks) == set(chunks)
    packs.delete([first])
    assert other.get([first, second]) == [None, chunks[second]]
    packs.delete([second])
    other.forget()
    assert has(other, chunks) == {third}
    packs.delete([third])
    other.forget()
    assert has(other, chunks) == set()


def test_a_chunk_deleted_and_put_again_is_found_in_its_new_place(
    packs: Packs, tmp_path: Path
) -> None:
    (key, data), (other_key, other_data) = chunk(), chunk()
    packs.put({key: data, other_key: other_data})
    other = Packs(tmp_path)
    assert other.get([key]) == [data]
    packs.delete([key])
    packs.put({key: data})
    assert other.get([key, other_key]) == [data, other_data]


def test_a_chunk_stored_by_two_at_once_goes_with_both_its_copies(
    packs: Packs, tmp_path: Path
) -> None:
    key, data = chunk()
    packs.put({key: data})
    Packs(tmp_path).put({key: data})
    packs.refresh()
    assert len(files(packs)) == 2
    packs.delete([key])
    assert files(packs) == []


def test_two_may_delete_the_same_chunks_at_once(packs: Packs, tmp_path: Path) -> None:
    chunks = dict(chunk(5_000) for _ in range(40))
    kept, *gone = chunks
    packs.put(chunks)
    others = [Packs(tmp_path) for _ in range(3)]
    threads = [threading.Thread(target=other.delete, args=(gone,)) for other in others]
    for other in others:
        other.refresh()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fresh = Packs(tmp_path)
    assert has(fresh, chunks) == {kept}
    assert fresh.get([kept]) == [chunks[kept]]


@pytest.mark.parametrize("length", [0, 5, 12, 1000])
def test_a_pack_that_is_cut_short_holds_nothing(packs: Packs, tmp_path: Path, length: int) -> None:
    key, data = chunk()
    packs.put({key: data})
    (tmp_path / "p" / "cut").write_bytes(files(packs)[0].read_bytes()[:length])
    fresh = Packs(tmp_path)
    assert fresh.get([key]) == [data]
    assert len(fresh.find("c/")) == 1


def test_a_full_disk_leaves_no_part_of_a_pack(
    packs: Packs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agents.checkpoints.blobs.os.write", full)
    key, data = chunk()
    with pytest.raises(StoreFullError):
        packs.put({key: data})
    assert files(packs) == []
    assert has(packs, [key]) == set()
