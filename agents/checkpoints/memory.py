"""Where to cut CRIU's page files, so that equal memory gives equal chunks.

``pages-N.img`` holds the pages of a process one after the other: one new page shifts all that
follow, and pieces cut at fixed offsets share nothing with the dump before. Pieces are therefore cut
where the memory map says that another area begins, and within an area after pages whose first bytes
hash to a certain pattern. So a cut depends on what lies around it and on nothing else: not on what
came before in the file, and not on where an area lies, which differs between replicas.
"""

from __future__ import annotations

from bisect import bisect_right
from mmap import ACCESS_READ, mmap
from pathlib import Path
from zlib import crc32

from agents.checkpoints.pagemaps import PAGE, ImageFormatError, read_areas, read_map

WINDOW = 64 * 1024
"""Bytes of memory in one chunk, about."""

_SAMPLE = 256
"""Bytes of a page that decide whether a piece ends with it."""


def cuts(images: Path, window: int = WINDOW) -> dict[str, list[int]]:
    """Return for each page file of the folder the lengths of the pieces to cut it into, in order.

    Pieces are between a quarter of ``window`` and one and a half times as long, in bytes. A page
    file that cannot be understood, or whose size is not what its pagemap says, is left out.
    """
    found: dict[str, list[int]] = {}
    for pagemap in sorted(images.glob("pagemap-*.img")):
        try:
            name, areas = _areas(pagemap)
            lengths = _cut(images / name, areas, window)
        except (ImageFormatError, OSError):
            continue
        if lengths:
            found[name] = lengths
    return found


class Cutter:
    """Finds where pieces end, from their content alone. ``window`` is their length, about, in
    bytes.
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


def _cut(pages: Path, areas: list[int], window: int) -> list[int]:
    """Cut areas, given by their numbers of pages one after the other in the file, into pieces."""
    if pages.stat().st_size != sum(areas) * PAGE or not areas:
        return []
    cutter = Cutter(window)
    lengths: list[int] = []
    with pages.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        at = end = 0
        for area in areas:
            end += area * PAGE
            while at < end:
                begin, at = at, cutter.end(content, at, end)
                lengths.append(at - begin)
    return lengths


def _areas(pagemap: Path) -> tuple[str, list[int]]:
    """Return the name of a process's page file, and how many pages each of its areas has there.

    Shared memory has no ``mm`` image: it is one area.
    """
    map = read_map(pagemap)
    starts = read_areas(pagemap.with_name(pagemap.name.replace("pagemap", "mm")))
    areas: list[int] = []
    last = -1
    for run in map.present():
        area = bisect_right(starts, run.address)
        if area == last:
            areas[-1] += run.pages
        else:
            areas.append(run.pages)
            last = area
    return map.name, areas
