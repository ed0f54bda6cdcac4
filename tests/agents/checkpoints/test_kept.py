"""Kept images are a convenience: anything odd about one, and it is as if it were not there."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from agents.checkpoints import Kept, Manifest
from agents.checkpoints.kept import IDLE_S

OWNER = "j1-r0"
Disk = namedtuple("Disk", "total used free")


def manifest(size: int = 100) -> Manifest:
    return Manifest(nonce="n", machine="m", created_at=0.0, bytes_raw=size, trees={})


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "kept", 1000)


def keep(kept: Kept, tmp_path: Path, key: str, *, owner: str = OWNER, size: int = 100) -> None:
    images = tmp_path / "images"
    images.mkdir()
    (images / "pages-1.img").write_bytes(b"p" * size)
    kept.keep(owner, key, manifest(size), images)
    assert not images.exists()
    seal = tmp_path / "kept" / owner / key / "seal"
    if seal.exists():
        os.utime(seal, (at := 1_000_000_000 + 10 * len(key), at))


def test_what_was_kept_is_found_with_its_manifest(kept: Kept, tmp_path: Path) -> None:
    keep(kept, tmp_path, "a")
    keep(kept, tmp_path, "bb")
    found = kept.find(OWNER, "a")
    assert found
    assert found.manifest == manifest()
    assert (found.images / "pages-1.img").read_bytes() == b"p" * 100
    newest = kept.newest(OWNER)
    assert newest
    assert newest.images.parent.name == "bb"
    assert kept.newest("j2-r0") is None


def test_what_was_found_once_is_not_read_again(kept: Kept, tmp_path: Path) -> None:
    keep(kept, tmp_path, "a")
    first = kept.find(OWNER, "a")
    assert first
    assert kept.find(OWNER, "a") is first
    assert kept.stands(first)
    keep(kept, tmp_path, "bb")
    kept.distrust(OWNER)
    assert not kept.stands(first)


@pytest.mark.parametrize("harm", ["write", "truncate", "remove", "add", "seal"])
def test_what_was_altered_on_disk_is_not_used(kept: Kept, tmp_path: Path, harm: str) -> None:
    keep(kept, tmp_path, "a")
    place = tmp_path / "kept" / OWNER / "a"
    pages = place / "images" / "pages-1.img"
    match harm:
        case "write":
            pages.write_bytes(b"q" * 100)
        case "truncate":
            os.truncate(pages, 50)
        case "remove":
            pages.unlink()
        case "add":
            (place / "images" / "parent").symlink_to("/")
        case "seal":
            (place / "seal").write_bytes(b"rubbish")
    assert kept.newest(OWNER) is None
    assert not place.exists()


def test_nothing_is_trusted_after_the_machine_was_started_anew(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(kept, tmp_path, "a")
    monkeypatch.setattr("agents.checkpoints.kept._boot", lambda: "another")
    assert kept.find(OWNER, "a") is None


def test_images_that_lean_are_not_kept(kept: Kept, tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    (images / "parent").symlink_to("../elsewhere")
    kept.keep(OWNER, "a", manifest(), images)
    assert not images.exists()
    assert kept.find(OWNER, "a") is None


def test_a_full_disk_keeps_nothing_and_harms_nobody(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1000, 950, 50))
    keep(kept, tmp_path, "a")
    assert kept.find(OWNER, "a") is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = Kept(tmp_path / "file" / "kept", 1000)
    keep(kept, tmp_path, "a")
    assert kept.find(OWNER, "a") is None
    kept.tidy([])


def test_the_newest_two_of_a_replica_stay(kept: Kept, tmp_path: Path) -> None:
    for key in ("a", "bb", "ccc"):
        keep(kept, tmp_path, key)
    kept.tidy([OWNER])
    assert [kept.find(OWNER, key) is not None for key in ("a", "bb", "ccc")] == [False, True, True]


def test_the_least_used_go_when_there_are_too_many_bytes(kept: Kept, tmp_path: Path) -> None:
    keep(kept, tmp_path, "a", owner="j1-r0", size=500)
    keep(kept, tmp_path, "bb", owner="j2-r0", size=500)
    keep(kept, tmp_path, "ccc", owner="j3-r0", size=400)
    keep(kept, tmp_path, "dddd", owner="j4-r0", size=1001)
    kept.tidy(["j1-r0", "j2-r0", "j3-r0"])
    assert kept.newest("j1-r0") is None
    assert kept.newest("j2-r0")
    assert kept.newest("j3-r0")
    assert kept.newest("j4-r0") is None


def test_what_belongs_to_no_replica_goes_after_a_while(kept: Kept, tmp_path: Path) -> None:
    keep(kept, tmp_path, "a")
    kept.tidy([OWNER])
    assert kept.newest(OWNER)
    kept.tidy([])
    assert kept.newest(OWNER) is None
    keep(kept, tmp_path, "a")
    os.utime(tmp_path / "kept" / OWNER / "a" / "seal")
    kept.tidy([])
    assert kept.newest(OWNER), f"less than {IDLE_S} s old"


def test_what_is_in_use_is_not_removed(kept: Kept, tmp_path: Path) -> None:
    keep(kept, tmp_path, "a")
    with kept.hold(OWNER):
        kept.tidy([])
        assert kept.find(OWNER, "a")
    kept.tidy([])
    assert kept.find(OWNER, "a") is None


def test_what_a_crash_left_goes(kept: Kept, tmp_path: Path) -> None:
    (tmp_path / "kept" / OWNER / "half" / "images").mkdir(parents=True)
    (tmp_path / "kept" / ".gone" / "images").mkdir(parents=True)
    kept.tidy([])
    assert not list((tmp_path / "kept").rglob("images"))


def test_a_distrusted_image_is_not_used_again(kept: Kept, tmp_path: Path) -> None:
    keep(kept, tmp_path, "a")
    with kept.hold(OWNER):
        kept.distrust(OWNER)
        assert kept.newest(OWNER) is None
