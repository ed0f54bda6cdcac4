"""The journal survives crashes, torn lines and its own growth."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agents.journal import Journal
from agents.lifecycle import Stage
from agents.protocol import Launch
from agents.record import Record, new_record
from tests.agents.portal import wish

pytestmark = pytest.mark.asyncio


def record(job: int = 1) -> Record:
    launch = Launch(command=["train"], environment={"A": "b"}, secrets={"KEY": "open-sesame"})
    return new_record(wish(job, launch=launch), boot="b1")


async def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    running = record().moved(Stage.RUNNING, checkpoint=4)
    await journal.write("a", record())
    await journal.write("a", running)
    await journal.write("b", record(2))
    await journal.write("b", None)
    assert Journal(tmp_path / "journal").records == {"a": running}


async def test_it_holds_no_launch_and_is_private(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    await journal.write("a", record())
    assert b"sesame" not in journal.path.read_bytes()
    assert b"train" not in journal.path.read_bytes()
    assert journal.path.stat().st_mode & 0o777 == 0o600


async def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    await journal.write("a", record())
    await journal.write("b", record(2))
    content = journal.path.read_bytes()
    journal.path.write_bytes(content[:-9])
    again = Journal(tmp_path / "journal")
    assert list(again.records) == ["a"]
    assert again.damaged == 1


async def test_many_writers_share_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    await asyncio.gather(*(journal.write(f"k{i}", record(i)) for i in range(1, 200)))
    assert len(Journal(tmp_path / "journal").records) == 199


async def test_it_does_not_grow_for_ever(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", slack=10)
    for i in range(200):
        await journal.write("a", record(i + 1))
    assert journal.path.read_bytes().count(b"\n") < 20
    assert Journal(tmp_path / "journal").records == journal.records


async def test_a_note_reaches_the_disk_with_the_next_write(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.note("a", record())
    assert Journal(tmp_path / "journal").records == {}
    journal = Journal(tmp_path / "journal")
    journal.note("a", record())
    await journal.write("b", record(2))
    assert sorted(Journal(tmp_path / "journal").records) == ["a", "b"]
