"""Output is kept once, in order, whatever is sent twice or too early."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from portal.actions import output
from portal.actions.output import (
    append_output,
    may_print,
    output_size,
    path_of,
    read_output,
)
from portal.actions.steering import migrate_job
from tests.live.conftest import town
from tests.live.puppets import Town

__all__ = ["town"]


@pytest.fixture(autouse=True)
def _folder(settings: Any, tmp_path: Path) -> None:
    settings.OUTPUT = tmp_path


def test_pieces_are_kept_once_and_in_order() -> None:
    assert append_output(1, 0, 0, b"one ") == 4
    assert append_output(1, 0, 0, b"one ") == 4
    assert append_output(1, 0, 2, b"e two") == 7
    assert append_output(1, 0, 20, b"too early") == 7, "a gap is asked for again"
    assert read_output(1, 0) == b"one two"
    assert read_output(1, 0, offset=-3) == b"two"
    assert read_output(1, 0, offset=4, limit=2) == b"tw"


def test_pieces_that_come_over_two_links_at_once_are_kept_once() -> None:
    pieces = [(number * 8, b"%07d\n" % number) for number in range(150)]
    with ThreadPoolExecutor(8) as links:
        every = [links.submit(send, pieces) for _ in range(8)]
        for each in every:
            each.result()
    assert read_output(1, 0, limit=10_000) == b"".join(data for _, data in pieces)


def send(pieces: list[tuple[int, bytes]]) -> None:
    for offset, data in pieces:
        append_output(1, 0, offset, data)


def test_nothing_was_printed_yet() -> None:
    assert (output_size(9, 0), read_output(9, 0)) == (0, b"")


def test_a_flood_is_cut_with_a_notice_and_its_sender_is_not_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(output, "LIMIT", 200)
    assert append_output(1, 0, 0, b"x" * 500) == 200
    assert append_output(1, 0, 500, b"more") == 504, "it goes on as if it had been kept"
    assert path_of(1, 0).read_bytes().endswith(output.NOTICE)


def test_a_placement_that_was_superseded_has_nothing_to_say_any_more(town: Town) -> None:
    here, there = town.node("n1", 1).node, town.node("n2", 1).node
    job = town.submit()
    town.rest()
    first, other = (here, there) if town.where(job) == ["n1"] else (there, here)
    assert may_print(first.id, job.id, 0, 1)
    assert may_print(first.id, job.id, 0, 0), "an older agent does not tell the epoch"
    assert not may_print(other.id, job.id, 0, 1)
    migrate_job(town.user, job)
    town.cycle()
    assert may_print(first.id, job.id, 0, 1), "it has only been promised another place"
    town.rest()
    assert town.where(job) == [other.name]
    assert may_print(other.id, job.id, 0, 2)
    assert not may_print(first.id, job.id, 0, 1)
