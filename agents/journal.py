"""The agent's journal: every replica's record, on disk before the act that it announces.

One line of JSON a change, appended and synced; several changes that wait at the same time share one
sync. It holds no launch, so no environment and no secret.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec

from agents.record import Record


class Entry(msgspec.Struct, omit_defaults=True):
    """One line: a replica's newest record, or none when it was forgotten."""

    key: str
    record: Record | None = None


class Journal:
    """Records by key, kept in ``path``."""

    def __init__(self, path: Path, *, slack: int = 1000) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        self.damaged = 0
        """Lines that could not be read; the last one may be torn by a crash."""
        self._slack = slack
        self._lines = 0
        self._pending = b""
        self._lock = asyncio.Lock()
        self._load()
        self._rewrite()

    def _load(self) -> None:
        if not self.path.exists():
            return
        for line in self.path.read_bytes().splitlines():
            try:
                entry = msgspec.json.decode(line, type=Entry)
            except msgspec.DecodeError:
                self.damaged += 1
                continue
            self._apply(entry)

    def _apply(self, entry: Entry) -> None:
        if entry.record is None:
            self.records.pop(entry.key, None)
        else:
            self.records[entry.key] = entry.record

    def note(self, key: str, record: Record | None) -> None:
        """Change a record; it reaches the disk with the next ``write``."""
        entry = Entry(key, record)
        self._apply(entry)
        self._pending += msgspec.json.encode(entry) + b"\n"

    async def write(self, key: str, record: Record | None) -> None:
        """Change a record and wait until it is on disk. Raises ``OSError``, as on a full disk."""
        self.note(key, record)
        async with self._lock:
            if self._pending:
                lines, self._pending = self._pending, b""
                await asyncio.to_thread(self._append, lines)

    def _append(self, lines: bytes) -> None:
        self._lines += lines.count(b"\n")
        if self._lines > self._slack + 4 * len(self.records):
            self._rewrite()
            return
        with self.path.open("ab") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())

    def _rewrite(self) -> None:
        """Write only what still matters, then put it in the old file's place."""
        records = dict(self.records)
        fresh = self.path.with_suffix(".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            for key, record in records.items():
                file.write(msgspec.json.encode(Entry(key, record)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)
        self._lines = len(records)
