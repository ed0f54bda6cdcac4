"""Pages are cut by content: a change in one place leaves the others alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from agents.checkpoints import Store, fetch_image, store_image
from agents.checkpoints.memory import WINDOW, cuts
from tests.agents.checkpoints.images import FILE_PRIVATE, PAGE, Area, write

HEAP = 0x5555_0000_3000
MAPPED = 0x7F00_0000_0000


def noise(pages: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(pages * PAGE)


def new_bytes(store: Store, images: Path, workspace: Path) -> int:
    return store_image(store, images, workspace).bytes_new


def test_pieces_are_neither_tiny_nor_huge(tmp_path: Path) -> None:
    write(tmp_path, [Area(HEAP, noise(4000, 1) + bytes(2000 * PAGE))])
    lengths = cuts(tmp_path, WINDOW)["pages-1.img"]
    assert sum(lengths) == 6000 * PAGE
    assert max(lengths) <= 1.5 * WINDOW
    assert min(lengths[:-1]) >= WINDOW / 4
    assert 0.5 * WINDOW < sum(lengths) / len(lengths) < 1.2 * WINDOW


def test_a_new_page_low_in_memory_shifts_nothing_else(
    store: Store, workspace: Path, tmp_path: Path
) -> None:
    data = Area(MAPPED, noise(400, 1))
    write(tmp_path / "1", [Area(HEAP, noise(3, 2)), data])
    write(tmp_path / "2", [Area(HEAP, noise(4, 2)), data])
    new_bytes(store, tmp_path / "1", workspace)
    assert new_bytes(store, tmp_path / "2", workspace) < 2 * WINDOW + _small(tmp_path / "2")


def test_pages_that_come_in_the_middle_change_only_what_is_near(
    store: Store, workspace: Path, tmp_path: Path
) -> None:
    low, high = noise(1000, 1), noise(1000, 2)
    write(tmp_path / "1", [Area(HEAP, low + high)])
    write(tmp_path / "2", [Area(HEAP, low + noise(7, 3) + high)])
    new_bytes(store, tmp_path / "1", workspace)
    assert new_bytes(store, tmp_path / "2", workspace) < 20 * WINDOW


def _small(images: Path) -> int:
    """Bytes of the small images, which differ with every layout."""
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
        write(tmp_path / str(number), areas)
    new_bytes(store, tmp_path / "0", workspace)
    assert new_bytes(store, tmp_path / "1", workspace) == _small(tmp_path / "1")


def test_zero_pages_in_memory_cost_nothing(store: Store, workspace: Path, tmp_path: Path) -> None:
    write(tmp_path / "1", [Area(HEAP, bytes(1000 * PAGE))])
    images = tmp_path / "1"
    stored = store_image(store, images, workspace)
    again = tmp_path / "again"
    fetch_image(store, stored.manifest_key, again, tmp_path / "w")
    assert stored.bytes_new < 1000 * PAGE
    assert (again / "pages-1.img").read_bytes() == (images / "pages-1.img").read_bytes()
    assert (again / "pages-1.img").stat().st_blocks == 0


@pytest.mark.parametrize("pages", [b"", b"not whole pages"])
def test_page_files_of_any_length_are_stored(
    store: Store, workspace: Path, tmp_path: Path, pages: bytes
) -> None:
    images = tmp_path / "1"
    write(images, [Area(HEAP, noise(40, 1))])
    (images / "pages-2.img").write_bytes(noise(40, 1) + pages)
    (images / "pages-3.img").write_bytes(pages)
    stored = store_image(store, images, workspace)
    fetch_image(store, stored.manifest_key, tmp_path / "again", tmp_path / "w")
    for name in ("pages-2.img", "pages-3.img"):
        assert (tmp_path / "again" / name).read_bytes() == (images / name).read_bytes()
