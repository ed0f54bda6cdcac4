"""Pages are cut by where they lie in memory: a change in one place leaves the others alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from agents.checkpoints import Store, fetch_image, store_image
from agents.checkpoints.memory import WINDOW, cuts
from tests.agents.checkpoints.images import FILE_PRIVATE, PAGE, Area, image, message, write

HEAP = 0x5555_0000_3000
MAPPED = 0x7F00_0000_0000


def noise(pages: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(pages * PAGE)


def new_bytes(store: Store, images: Path, workspace: Path) -> int:
    return store_image(store, images, workspace).bytes_new


def test_pages_are_cut_at_windows_of_the_address_space(tmp_path: Path) -> None:
    write(tmp_path, [Area(HEAP, noise(40, 1))], heap=HEAP)
    assert cuts(tmp_path, WINDOW) == {"pages-1.img": [WINDOW, WINDOW, 8 * PAGE]}


def test_pages_of_one_window_stay_together_across_gaps(tmp_path: Path) -> None:
    areas = [
        Area(HEAP, noise(1, 1)),
        Area(HEAP + 5 * PAGE, noise(2, 2)),
        Area(HEAP + WINDOW, noise(1, 3)),
    ]
    write(tmp_path, areas, heap=HEAP)
    assert cuts(tmp_path, WINDOW) == {"pages-1.img": [3 * PAGE, PAGE]}


def test_a_new_page_low_in_memory_shifts_nothing_else(
    store: Store, workspace: Path, tmp_path: Path
) -> None:
    data = Area(MAPPED, noise(400, 1))
    write(tmp_path / "1", [Area(HEAP, noise(3, 2)), data], heap=HEAP)
    write(tmp_path / "2", [Area(HEAP, noise(4, 2)), data], heap=HEAP)
    new_bytes(store, tmp_path / "1", workspace)
    assert new_bytes(store, tmp_path / "2", workspace) == 4 * PAGE + _small(tmp_path / "2")


def _small(images: Path) -> int:
    """Bytes of the small images that differ with every layout."""
    return sum((images / name).stat().st_size for name in ("pagemap-7.img", "mm-7.img"))


def test_replicas_with_other_random_layouts_share_their_data(
    store: Store, workspace: Path, tmp_path: Path
) -> None:
    data, code = noise(400, 1), noise(50, 2)
    for number, shift in enumerate((0, 0x7_3000)):
        areas = [
            Area(MAPPED + shift, data),
            Area(MAPPED + 0x100_0000 + shift, code, FILE_PRIVATE, offset=0x5000),
        ]
        write(tmp_path / str(number), areas, heap=HEAP + 0x1234_5000 * number)
    new_bytes(store, tmp_path / "0", workspace)
    assert new_bytes(store, tmp_path / "1", workspace) == _small(tmp_path / "1")


def test_zero_pages_in_memory_cost_nothing(store: Store, workspace: Path, tmp_path: Path) -> None:
    write(tmp_path / "1", [Area(HEAP, bytes(1000 * PAGE))], heap=HEAP)
    images = tmp_path / "1"
    stored = store_image(store, images, workspace)
    again = tmp_path / "again"
    fetch_image(store, stored.manifest_key, again, tmp_path / "w")
    assert stored.bytes_new < 1000 * PAGE
    assert (again / "pages-1.img").read_bytes() == (images / "pages-1.img").read_bytes()
    assert (again / "pages-1.img").stat().st_blocks == 0


def test_newer_page_counts_and_absent_pages_are_understood(tmp_path: Path) -> None:
    write(tmp_path, [Area(HEAP, noise(6, 1))], heap=HEAP)
    maps = [
        message([(1, 1)]),
        message([(1, HEAP), (2, 0), (5, 2), (4, 4)]),
        message([(1, HEAP + 2 * PAGE), (2, 9), (4, 1)]),
        message([(1, HEAP + 20 * PAGE), (2, 4)]),
    ]
    (tmp_path / "pagemap-7.img").write_bytes(image(0x56084025, maps))
    assert cuts(tmp_path, WINDOW) == {"pages-1.img": [2 * PAGE, 4 * PAGE]}


def test_shared_memory_is_cut_by_its_own_offsets(tmp_path: Path) -> None:
    maps = [message([(1, 3)]), message([(1, 8 * PAGE), (2, 16), (4, 4)])]
    (tmp_path / "pagemap-shmem-9.img").write_bytes(image(0x56084025, maps))
    (tmp_path / "pages-3.img").write_bytes(noise(16, 1))
    assert cuts(tmp_path, WINDOW) == {"pages-3.img": [8 * PAGE, 8 * PAGE]}


@pytest.mark.parametrize("harm", [b"", b"rubbish", b"\x19CVT%@\x08V\xff\xff\x00\x00cut short"])
def test_images_that_are_not_understood_are_stored_all_the_same(
    store: Store, workspace: Path, tmp_path: Path, harm: bytes
) -> None:
    images = tmp_path / "1"
    write(images, [Area(HEAP, noise(40, 1))], heap=HEAP)
    (images / "pagemap-7.img").write_bytes(harm)
    assert cuts(images, WINDOW) == {}
    stored = store_image(store, images, workspace)
    fetch_image(store, stored.manifest_key, tmp_path / "again", tmp_path / "w")
    assert (tmp_path / "again" / "pages-1.img").read_bytes() == noise(40, 1)


def test_pages_that_do_not_fit_their_map_are_cut_at_fixed_offsets(tmp_path: Path) -> None:
    write(tmp_path, [Area(HEAP, noise(40, 1))], heap=HEAP)
    (tmp_path / "pages-1.img").write_bytes(noise(39, 1))
    assert cuts(tmp_path, WINDOW) == {}
