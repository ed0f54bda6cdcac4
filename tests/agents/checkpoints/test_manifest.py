"""A manifest that leads out of its folder, or does not fit itself, is refused as damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.checkpoints import DamagedError, Store, fetch_tree
from agents.checkpoints.manifest import Entry, Extent, Manifest, seal, unseal

ROOT = Entry(path=b"", kind="folder", mode=0o755)


def manifest(*entries: Entry, version: int = 1) -> Manifest:
    return Manifest(
        version=version,
        nonce="n",
        machine="m",
        created_at=0.0,
        bytes_raw=0,
        trees={"workspace": [ROOT, *entries]},
    )


def put(store: Store, made: Manifest) -> str:
    key, data = seal(made)
    store.blobs.put({f"m/{key}": data})
    return key


@pytest.mark.parametrize(
    "entries",
    [
        [Entry(path=b"../evil", kind="file")],
        [Entry(path=b"/etc/cron.d/evil", kind="file")],
        [Entry(path=b"a/../../evil", kind="file")],
        [Entry(path=b"./a", kind="file")],
        [Entry(path=b"a//b", kind="file")],
        [Entry(path=b"a\0b", kind="file")],
        [Entry(path=b"no-folder/a", kind="file")],
        [Entry(path=b"l", kind="link", target=b"/etc"), Entry(path=b"l/evil", kind="file")],
        [Entry(path=b"f", kind="file"), Entry(path=b"f/evil", kind="file")],
        [Entry(path=b"twice", kind="file"), Entry(path=b"twice", kind="link", target=b"/")],
        [Entry(path=b"h", kind="same", target=b"/etc/shadow")],
        [Entry(path=b"l", kind="link", target=b"/x"), Entry(path=b"h", kind="same", target=b"l")],
        [Entry(path=b"d", kind="device")],
        [Entry(path=b"f", kind="file", size=1, extents=[Extent(0, 2, bytes(32))])],
        [Entry(path=b"f", kind="file", size=9, extents=[Extent(0, 4, b"short")])],
        [Entry(path=b"f", kind="file", size=9, extents=[Extent(-1, 4, bytes(32))])],
        [Entry(path=b"f", kind="file", size=1 << 40, extents=[Extent(0, 1 << 30, bytes(32))])],
        [Entry(path=b"f", kind="folder", size=9, extents=[Extent(0, 4, bytes(32))])],
    ],
)
def test_a_manifest_that_is_not_safe_is_refused(
    store: Store, tmp_path: Path, entries: list[Entry]
) -> None:
    key = put(store, manifest(*entries))
    with pytest.raises(DamagedError):
        fetch_tree(store, key, tmp_path / "below" / "out")
    assert not (tmp_path / "below").exists()


def test_a_root_that_is_not_a_folder_is_refused(store: Store) -> None:
    made = manifest()
    made.trees["workspace"] = [Entry(path=b"", kind="link", target=b"/etc")]
    with pytest.raises(DamagedError):
        store.load(put(store, made))


def test_a_manifest_of_another_version_is_refused_by_name(store: Store) -> None:
    with pytest.raises(DamagedError, match="version 2"):
        store.load(put(store, manifest(version=2)))


def test_a_manifest_comes_back_as_it_was() -> None:
    made = manifest(
        Entry(
            path=b"f",
            kind="file",
            size=9,
            extents=[Extent(0, 4, bytes(32)), Extent(4, 5, b"x" * 32)],
        )
    )
    key, data = seal(made)
    assert unseal(key, data) == made


def test_every_byte_of_a_manifest_counts() -> None:
    key, data = seal(manifest(Entry(path=b"f", kind="file")))
    for at in range(len(data)):
        altered = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        with pytest.raises(DamagedError):
            unseal(key, altered)
