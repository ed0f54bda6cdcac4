"""A placement's output file, as its part of the whole output of a replica."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import stream as streams
from agents.stream import NOTICE_LENGTH, Stream


def sent(stream: Stream, size: int = 1000) -> bytes:
    """Everything that it sends now, in pieces."""
    data = b""
    while piece := stream.read(size):
        stream.sent += len(piece)
        data += piece
    return data


def test_it_begins_where_the_placement_begins(tmp_path: Path) -> None:
    (tmp_path / "output").write_bytes(b"second")
    stream = Stream(1, 0, tmp_path / "output", [(0, 100)])
    assert (stream.sent, stream.end()) == (100, 106)
    assert sent(stream) == b"second"
    assert stream.sent == 106


def test_no_file_is_no_output(tmp_path: Path) -> None:
    stream = Stream(1, 0, tmp_path / "none", [(0, 5)])
    assert (stream.end(), stream.read(10)) == (5, b"")


def test_what_the_other_side_lacks_is_sent_again(tmp_path: Path) -> None:
    (tmp_path / "output").write_bytes(b"0123456789")
    stream = Stream(1, 0, tmp_path / "output", [(0, 100)])
    sent(stream)
    stream.rewind(104)
    assert sent(stream) == b"456789"
    stream.rewind(3)
    assert stream.sent == 100, "what lies before the placement is not its own"
    stream.rewind(10_000)
    assert stream.sent == 110


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "BACKLOG", 1000)
    monkeypatch.setattr(streams, "KEPT", 100)


@pytest.mark.usefixtures("small")
def test_the_middle_of_a_flood_is_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_bytes(b"begin" + b"x" * 5000 + b"the end")
    stream = Stream(1, 0, path, [(0, 50)])
    stream.sent += len(stream.read(5))
    assert stream.skip_flood()
    rest = sent(stream, 30)
    assert rest.startswith(b"\n[tidepool left out ")
    assert f"{5000 + 7 - 100}".encode() in rest
    assert rest.endswith(b"x" * 93 + b"the end")
    assert len(rest) == NOTICE_LENGTH + 100
    assert stream.sent == stream.end()


@pytest.mark.usefixtures("small")
def test_a_flood_that_was_cut_is_sent_again_alike(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_bytes(os.urandom(3000))
    stream = Stream(1, 0, path, [(0, 0)])
    first = stream.read(200)
    stream.sent += len(first)
    assert stream.skip_flood()
    whole = first + sent(stream, 64)
    for held in (0, 1, 199, 200, 201, 200 + NOTICE_LENGTH, len(whole)):
        again = Stream(1, 0, path, stream.marks)
        again.rewind(held)
        assert sent(again, 17) == whole[held:]


@given(st.lists(st.binary(max_size=400), max_size=12), st.integers(0, 5000))
@settings(max_examples=60, deadline=None)
def test_offsets_and_bytes_always_agree(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], held: int
) -> None:
    path = tmp_path_factory.mktemp("stream") / "output"
    stream, whole = Stream(1, 0, path, [(0, 7)]), b""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BACKLOG", 300)
        patch.setattr(streams, "KEPT", 50)
        for piece in pieces:
            with path.open("ab") as file:
                file.write(piece)
            stream.skip_flood()
            data = stream.read(120)
            stream.sent += len(data)
            whole += data
        whole += sent(stream, 33)
        again = Stream(1, 0, path, stream.marks)
        again.rewind(held)
        assert sent(again, 51) == whole[max(0, held - 7) :]


def test_what_is_held_is_given_back_to_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_bytes(os.urandom(4 << 20))
    stream = Stream(1, 0, path, [(0, 0)])
    os.sync()
    before = path.stat().st_blocks
    stream.release(3 << 20)
    if path.stat().st_blocks == before:
        pytest.fail("this file system keeps what is punched out")
    assert path.stat().st_size == 4 << 20
    stream.rewind(3 << 20)
    assert len(stream.read(100)) == 100


def test_a_burst_passes_and_then_the_rate_holds(tmp_path: Path) -> None:
    stream = Stream(1, 0, tmp_path / "output", [(0, 0)])
    assert stream.allow(100, rate=1e-9, burst=150)
    assert not stream.allow(100, rate=1e-9, burst=150)
    assert stream.allow(50, rate=1e-9, burst=150)
