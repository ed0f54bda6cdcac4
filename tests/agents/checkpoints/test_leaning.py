"""Images that lean on others hold the same memory, and little of it themselves."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from agents.checkpoints import Base, DamagedError, Store, fetch_image, store_image
from agents.checkpoints.leaning import PARENT_LINK
from agents.checkpoints.pagemaps import PARENT, Run, read_map
from tests.agents.checkpoints.images import PAGE, Area, image, message, write

HEAP = 0x5555_0000_3000
MAPPED = 0x7F00_0000_0000


def noise(pages: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(pages * PAGE)


def memory(images: Path) -> dict[int, bytes]:
    """What CRIU would restore: content by address, looked up in the parent where the map says."""
    map = read_map(images / "pagemap-7.img")
    pages = (images / map.name).read_bytes()
    beneath = memory(images / PARENT_LINK) if (images / PARENT_LINK).exists() else {}
    found, at = {}, 0
    for run in map.runs:
        for address in range(run.address, run.address + run.pages * PAGE, PAGE):
            if run.flags & PARENT:
                found[address] = beneath[address]
            else:
                found[address] = pages[at : at + PAGE]
                at += PAGE
    assert at == len(pages)
    return found


@pytest.fixture
def base(store: Store, workspace: Path, tmp_path: Path) -> Base:
    """An image of 2000 pages that this node holds, some of them zeros."""
    images = tmp_path / "kept" / "images"
    write(images, [Area(HEAP, noise(1000, 1)), Area(MAPPED, noise(900, 2) + bytes(100 * PAGE))])
    return Base(images=images, manifest=store_image(store, images, workspace).manifest)


def changed(tmp_path: Path, *, low: bytes = b"", high: bytes = b"") -> Path:
    """The same process later on: other bytes at the beginning, other pages above."""
    images = tmp_path / "later"
    heap = low + noise(1000, 1)[len(low) :]
    areas = [Area(HEAP, heap), Area(MAPPED, noise(900, 2) + bytes(100 * PAGE))]
    write(images, [*areas, *([Area(MAPPED + 0x4000_0000, high)] if high else [])])
    return images


def test_only_what_the_base_lacks_is_fetched(
    store: Store, workspace: Path, tmp_path: Path, base: Base
) -> None:
    later = changed(tmp_path, low=noise(3, 5), high=noise(20, 6))
    key = store_image(store, later, workspace).manifest_key
    leaning = tmp_path / "replica" / "images"
    fetched = fetch_image(store, key, leaning, tmp_path / "replica" / "workspace", base=base)
    assert memory(leaning) == memory(later)
    assert (leaning / "pages-1.img").stat().st_blocks * 512 < 100 * PAGE
    assert fetched.bytes_fetched < 0.2 * fetched.bytes_raw
    assert (leaning / "core-7.img").read_bytes() == (later / "core-7.img").read_bytes()


def test_pages_that_went_away_or_became_zeros_are_not_found_in_the_base(
    store: Store, workspace: Path, tmp_path: Path, base: Base
) -> None:
    later = tmp_path / "later"
    areas = [Area(HEAP, bytes(200 * PAGE) + noise(1000, 1)[200 * PAGE :])]
    write(later, [*areas, Area(MAPPED + 40 * PAGE, noise(900, 2)[40 * PAGE :])])
    key = store_image(store, later, workspace).manifest_key
    fetch_image(store, key, tmp_path / "r" / "images", tmp_path / "r" / "workspace", base=base)
    assert memory(tmp_path / "r" / "images") == memory(later)


def test_an_unchanged_image_leans_wholly(
    store: Store, workspace: Path, tmp_path: Path, base: Base
) -> None:
    key = store_image(store, changed(tmp_path), workspace).manifest_key
    fetch_image(store, key, tmp_path / "r" / "images", None, base=base)
    assert (tmp_path / "r" / "images" / "pages-1.img").stat().st_size == 0
    assert memory(tmp_path / "r" / "images") == memory(tmp_path / "later")
    assert not (tmp_path / "r" / "workspace").exists()


def test_what_is_not_understood_is_fetched_whole(
    store: Store, workspace: Path, tmp_path: Path, base: Base
) -> None:
    later = changed(tmp_path, low=noise(3, 5))
    (later / "pagemap-7.img").write_bytes(b"rubbish")
    key = store_image(store, later, workspace).manifest_key
    fetch_image(store, key, tmp_path / "r" / "images", None, base=base)
    for name in ("pages-1.img", "pagemap-7.img"):
        assert (tmp_path / "r" / "images" / name).read_bytes() == (later / name).read_bytes()
    assert not (tmp_path / "r" / "images" / PARENT_LINK).is_symlink()


def test_another_process_at_the_same_addresses_shares_nothing_by_mistake(
    store: Store, workspace: Path, tmp_path: Path, base: Base
) -> None:
    other = tmp_path / "other"
    # The same content a page further on: equal chunks, but not at equal addresses.
    write(other, [Area(HEAP + PAGE, noise(1000, 1)), Area(MAPPED, noise(1000, 9))])
    key = store_image(store, other, workspace).manifest_key
    fetch_image(store, key, tmp_path / "r" / "images", None, base=base)
    assert memory(tmp_path / "r" / "images") == memory(other)


def test_a_damaged_chunk_is_refused_before_anything_is_made(
    store: Store, workspace: Path, tmp_path: Path, base: Base
) -> None:
    later = changed(tmp_path, low=noise(3, 5))
    stored = store_image(store, later, workspace)
    for pack in (tmp_path / "store" / "p").iterdir():
        data = bytearray(pack.read_bytes())
        data[40:60] = bytes(20)
        pack.write_bytes(bytes(data))
    with pytest.raises(DamagedError):
        fetch_image(store, stored.manifest_key, tmp_path / "r" / "images", None, base=base)
    assert list((tmp_path / "r").iterdir()) == []


def test_newer_page_counts_and_absent_pages_are_understood(tmp_path: Path) -> None:
    maps = [
        message([(1, 1)]),
        message([(1, HEAP), (2, 0), (5, 2), (4, 4)]),
        message([(1, HEAP + 2 * PAGE), (2, 9), (4, 1)]),
        message([(1, HEAP + 20 * PAGE), (2, 4)]),
    ]
    (tmp_path / "pagemap-7.img").write_bytes(image(0x56084025, maps))
    map = read_map(tmp_path / "pagemap-7.img")
    assert map.name == "pages-1.img"
    assert map.present() == [Run(HEAP, 2), Run(HEAP + 20 * PAGE, 4)]
    assert map.size() == 6 * PAGE
