"""Writes to files are told of by the kernel, and output is sent when it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agents import output
from agents.output import Outputs
from agents.protocol import Output
from agents.writes import Writes

pytestmark = pytest.mark.asyncio
SOON_S = 20.0


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(SOON_S):
        while not condition():
            await asyncio.sleep(0.005)


async def test_only_files_that_were_added_are_told_of(tmp_path: Path) -> None:
    told = asyncio.Event()
    writes = Writes(told.set)
    try:
        one, other = tmp_path / "one", tmp_path / "other"
        assert writes.add(one)
        other.write_bytes(b"unheard")
        with one.open("ab") as file:
            file.write(b"heard")
        async with asyncio.timeout(SOON_S):
            await told.wait()
        writes.remove(one)
        assert not writes.add(tmp_path / "nowhere" / "file")
    finally:
        writes.close()


async def test_output_is_sent_because_it_was_written_not_because_it_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "IDLE_S", 3600.0)
    monkeypatch.setattr(output, "POLL_S", 3600.0)
    sent: list[Output] = []

    async def send(piece: Output) -> None:
        sent.append(piece)

    outputs = Outputs(1 << 20, lambda key, marks: None)
    pump = asyncio.create_task(outputs.pump(send))
    try:
        path = tmp_path / "output"
        outputs.open("a", 1, 0, path, [(0, 0)])
        for number in range(3):
            with path.open("ab") as file:
                file.write(b"line %d\n" % number)
            await until(lambda count=number + 1: len(sent) == count)  # type: ignore[misc]
        assert b"".join(piece.data for piece in sent) == b"line 0\nline 1\nline 2\n"
    finally:
        pump.cancel()
