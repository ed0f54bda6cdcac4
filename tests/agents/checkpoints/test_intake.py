"""Pages are taken while they are written: whole files without a kept image, else what it lacks."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.checkpoints import (
    Base,
    Intake,
    Store,
    StoreFullError,
    StoreUnreachableError,
    fetch_image,
    intake,
    let_go,
    open_store,
    store_image,
)
from agents.checkpoints.memory import WINDOW
from agents.checkpoints.taking import END, Order, Taker
from tests.agents.checkpoints.images import PAGE, Area, dump_again, write
from tests.agents.checkpoints.test_memory import HEAP, noise

MEMORY = noise(900, 1) + bytes(300 * PAGE) + noise(300, 2)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def take(tmp_path: Path) -> Callable[..., Intake]:
    """Dump the images of a process with this memory through an intake."""

    def take(name: str, memory: bytes, base: Base | None = None) -> Intake:
        write(tmp_path / f"{name}-source", [Area(HEAP, memory)])
        intake = Intake(tmp_path / name, tmp_path / f"{name}-aside", base=base)
        with intake:
            dump_again(tmp_path / f"{name}-source", tmp_path / name)
        return intake

    return take


def test_without_a_base_the_images_are_what_would_have_been_written(
    take: Callable[..., Intake], tmp_path: Path
) -> None:
    intake = take("first", MEMORY)
    assert contents(tmp_path / "first") == contents(tmp_path / "first-source")
    assert not intake.lean
    assert (tmp_path / "first" / "pages-1.img").stat().st_blocks * 512 < len(MEMORY)


def test_what_was_taken_is_stored_and_fetched_whole(
    take: Callable[..., Intake], store: Store, workspace: Path, tmp_path: Path
) -> None:
    intake = take("first", MEMORY)
    stored = store_image(store, tmp_path / "first", workspace, intake=intake)
    fetch_image(store, stored.manifest_key, tmp_path / "again", None)
    assert contents(tmp_path / "again") == contents(tmp_path / "first-source")


def test_only_what_the_kept_image_lacks_is_written_and_stored(
    take: Callable[..., Intake], store: Store, workspace: Path, tmp_path: Path
) -> None:
    first = take("first", MEMORY)
    manifest = store_image(store, tmp_path / "first", workspace, intake=first).manifest
    changed = MEMORY[: 50 * PAGE] + noise(7, 9) + MEMORY[50 * PAGE :]
    later = take("later", changed, Base(images=tmp_path / "first", manifest=manifest))
    assert later.lean
    assert later.likeness > 0.95
    assert not (tmp_path / "later" / "pages-1.img").exists()
    stored = store_image(store, tmp_path / "later", workspace, intake=later)
    assert 7 * PAGE < stored.bytes_new < 80 * PAGE
    fetch_image(store, stored.manifest_key, tmp_path / "again", None)
    assert contents(tmp_path / "again") == contents(tmp_path / "later-source")
    later.discard()
    assert not (tmp_path / "later-aside").exists()


def test_what_the_store_lacks_is_read_from_the_kept_image(
    take: Callable[..., Intake], store: Store, workspace: Path, tmp_path: Path
) -> None:
    first = take("first", MEMORY)
    manifest = store_image(store, tmp_path / "first", workspace, intake=first).manifest
    other = open_store(tmp_path / "other")
    later = take("later", MEMORY, Base(images=tmp_path / "first", manifest=manifest))
    stored = store_image(other, tmp_path / "later", workspace, intake=later)
    fetch_image(other, stored.manifest_key, tmp_path / "again", None)
    assert contents(tmp_path / "again") == contents(tmp_path / "later-source")


def test_a_full_disk_is_told_after_the_dump_has_come_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    write(tmp_path / "source", [Area(HEAP, MEMORY)])
    order = Order(str(tmp_path / "images"), str(tmp_path / "aside"), False, b"", WINDOW)
    near, far = socket.socketpair()
    with near, far:
        taker = Taker(order, far.fileno())
        working = threading.Thread(target=taker.work)
        working.start()
        dump_again(tmp_path / "source", tmp_path / "images")
        near.sendall(END)
        working.join()
        taker.finish()
    assert taker.taken().failure == StoreFullError.id
    assert (tmp_path / "images" / "core-7.img").read_bytes() == b"registers"
    assert not (tmp_path / "images" / "pages-1.img").exists()


def test_what_cannot_be_written_is_told_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "aside").write_text("in the way")
    with (
        pytest.raises(StoreUnreachableError, match="folder for checkpoints cannot be used"),
        Intake(tmp_path / "images", tmp_path / "aside"),
    ):
        pass


def test_a_process_that_was_killed_is_started_again(
    take: Callable[..., Intake], tmp_path: Path
) -> None:
    take("first", MEMORY)
    killed = intake._server._process
    assert killed is not None
    killed.kill()
    killed.wait()
    take("second", MEMORY)
    assert contents(tmp_path / "second") == contents(tmp_path / "second-source")


def test_a_dump_whose_taker_is_killed_fails_with_the_reason(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreUnreachableError, match="was killed"),
        Intake(tmp_path / "images", tmp_path / "aside") as taking,
    ):
        taking._connection.shutdown(socket.SHUT_RDWR)


def test_the_error_of_a_dump_is_not_hidden(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="no such process"),
        Intake(tmp_path / "images", tmp_path / "aside"),
    ):
        raise RuntimeError("no such process")
    assert list((tmp_path / "images").iterdir()) == []


def test_equal_memory_is_cut_alike_whatever_its_pipe_brings_at_once(
    take: Callable[..., Intake], tmp_path: Path
) -> None:
    one = take("one", MEMORY)
    two = take("two", noise(31, 5) + MEMORY)
    digests = [
        [piece.digest for _, pieces in each.files() for piece in pieces] for each in (one, two)
    ]
    assert len(set(digests[0]) & set(digests[1])) > 0.9 * len(digests[0])


def test_any_number_of_page_files_is_taken_or_left_where_it_is(
    store: Store, workspace: Path, tmp_path: Path
) -> None:
    many = {f"pages-{number}.img": noise(3, number) for number in range(1, 40)}
    source = tmp_path / "source"
    source.mkdir()
    for name, content in many.items():
        (source / name).write_bytes(content)
    with Intake(tmp_path / "images", tmp_path / "aside") as intake:
        dump_again(source, tmp_path / "images")
    assert contents(tmp_path / "images") == many
    stored = store_image(store, tmp_path / "images", workspace, intake=intake)
    fetch_image(store, stored.manifest_key, tmp_path / "again", None)
    assert contents(tmp_path / "again") == many


def test_a_dump_whose_agent_was_killed_waits_for_no_reader(tmp_path: Path) -> None:
    place = tmp_path / "pages-1.img"
    os.mkfifo(place)
    (tmp_path / "pages-2.img").write_bytes(b"p")
    writer = threading.Thread(target=lambda: os.close(os.open(place, os.O_WRONLY)))
    writer.start()
    wchan = Path(f"/proc/self/task/{writer.native_id}/wchan")
    while wchan.read_text() not in ("wait_for_partner", "fifo_open"):
        time.sleep(0.001)
    let_go(tmp_path)
    writer.join()
    assert contents(tmp_path) == {"pages-2.img": b"p"}
