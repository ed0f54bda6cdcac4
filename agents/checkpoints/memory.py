"""Where to cut the pages of a process, so that equal memory gives equal chunks.

CRIU writes the pages of a process one after the other: one new page shifts all that follow, and
pieces cut at fixed offsets share nothing with the dump before. Pieces therefore end after pages
whose first bytes hash to a certain pattern. So a cut depends on what lies around it and on nothing
else: not on what came before, and not on where memory lies, which differs between replicas.
"""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from pathlib import Path
from zlib import crc32

from agents.checkpoints.pagemaps import PAGE

WINDOW = 64 * 1024
"""Bytes of memory in one chunk, about."""

_SAMPLE = 256
"""Bytes of a page that decide whether a piece ends with it."""


class Cutter:
    """Finds where pieces end, from their content alone. ``window`` is their length, about, in
    bytes; they are between a quarter of it and one and a half times as long.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.most = window * 3 // 2
        """Bytes of the longest piece."""
        self._least = window // 4
        self._mask = window // PAGE // 2 - 1

    def end(self, content: mmap | memoryview, begin: int, end: int) -> int:
        """Return where the piece that begins there ends; pages up to ``end`` count, in bytes."""
        last = min(end, begin + self.most)
        # A page too near to the last cut cannot end a piece: it need not be looked at.
        at = begin + self._least
        while at < last:
            place = at - PAGE
            if crc32(content[place : place + _SAMPLE]) & self._mask == self._mask:
                return at
            at += PAGE
        return last


def cuts(images: Path, window: int = WINDOW) -> dict[str, list[int]]:
    """Return for each page file of the folder the lengths of its pieces, in order and in bytes."""
    cutter = Cutter(window)
    found: dict[str, list[int]] = {}
    for path in sorted(images.glob("pages-*.img")):
        size = path.stat().st_size
        if not size:
            continue
        lengths = found[path.name] = []
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            at = 0
            while at < size:
                begin, at = at, cutter.end(content, at, size)
                lengths.append(at - begin)
    return found
