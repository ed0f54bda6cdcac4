"""Where to cut CRIU's page files, so that equal memory gives equal chunks.

``pages-N.img`` holds the pages of a process one after the other: one new page shifts all that
follow, and pieces cut at fixed offsets share nothing with the dump before. Pieces are therefore cut
where the memory map says that another area begins, and within an area after pages whose first bytes
hash to a certain pattern. So a cut depends on what lies around it and on nothing else: not on what
came before in the file, and not on where an area lies, which differs between replicas.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from zlib import crc32

PAGE = 4096
WINDOW = 64 * 1024
"""Bytes of memory in one chunk, about."""

_COMMON_MAGIC = 0x54564319
_PAGEMAP_MAGIC = 0x56084025
_MM_MAGIC = 0x57492820
_PRESENT = 1 << 2

_SAMPLE = 256
"""Bytes of a page that decide whether a piece ends with it."""

Fields = list[tuple[int, int | bytes]]


class ImageFormatError(ValueError):
    """A file of CRIU's images could not be read; it is then cut at fixed offsets."""


def cuts(images: Path, window: int = WINDOW) -> dict[str, list[int]]:
    """Return for each page file of the folder the lengths of the pieces to cut it into, in order.

    Pieces are between a quarter of ``window`` and one and a half times as long, in bytes. A page
    file that cannot be understood, or whose size is not what its pagemap says, is left out.
    """
    found: dict[str, list[int]] = {}
    for pagemap in sorted(images.glob("pagemap-*.img")):
        try:
            name, runs = _runs(pagemap)
            lengths = _cut(images / name, runs, window)
        except (ImageFormatError, OSError):
            continue
        if lengths:
            found[name] = lengths
    return found


def _cut(pages: Path, runs: list[int], window: int) -> list[int]:
    """Cut runs of pages, one after the other in the file, each into pieces."""
    if pages.stat().st_size != sum(runs) * PAGE or not runs:
        return []
    mask = window // PAGE // 2 - 1
    least, most = window // PAGE // 4, window // PAGE * 3 // 2
    lengths: list[int] = []
    with pages.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        at = 0
        for run in runs:
            begin, end = at, at + run * PAGE
            while at < end:
                sample = content[at : at + _SAMPLE]
                at += PAGE
                count = (at - begin) // PAGE
                if at == end or count >= most or (count >= least and crc32(sample) & mask == mask):
                    lengths.append(at - begin)
                    begin = at
    return lengths


def _runs(pagemap: Path) -> tuple[str, list[int]]:
    """Return the name of a process's page file, and how many pages each of its areas has there."""
    entries = _entries(pagemap, _PAGEMAP_MAGIC)
    head = dict(_fields(next(entries, b"")))
    starts = _areas(pagemap.with_name(pagemap.name.replace("pagemap", "mm")))
    runs: list[int] = []
    last = -1
    for entry in entries:
        values = dict(_fields(entry))
        address, pages = _number(values, 1), _number(values, 5) or _number(values, 2)
        flags = _number(values, 4) if 4 in values else 0 if _number(values, 3) else _PRESENT
        if not flags & _PRESENT:
            continue
        area = bisect_right(starts, address)
        if area == last:
            runs[-1] += pages
        else:
            runs.append(pages)
            last = area
    return f"pages-{_number(head, 1)}.img", runs


def _areas(path: Path) -> list[int]:
    """Read where a process's areas begin; shared memory has no ``mm`` image: it is one area."""
    if not path.is_file():
        return []
    starts: list[int] = []
    for number, value in _fields(next(_entries(path, _MM_MAGIC), b"")):
        if number == 14 and isinstance(value, bytes):
            starts.append(_number(dict(_fields(value)), 1))
    return sorted(starts)


def _entries(path: Path, magic: int) -> Iterator[bytes]:
    """Yield the messages of one image: two magic numbers, then each message after its length."""
    data = path.read_bytes()
    if len(data) < 8 or struct.unpack_from("<II", data) != (_COMMON_MAGIC, magic):
        raise ImageFormatError(f"{path.name} is not an image of a known kind")
    at = 8
    while at < len(data):
        if at + 4 > len(data):
            raise ImageFormatError(f"{path.name} is cut short")
        (size,) = struct.unpack_from("<I", data, at)
        at += 4 + size
        if at > len(data):
            raise ImageFormatError(f"{path.name} is cut short")
        yield data[at - size : at]


def _fields(message: bytes) -> Fields:
    """Read a protobuf message without its schema: pairs of field number and integer or bytes."""
    fields: Fields = []
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(message, at)
            fields.append((number, value))
            continue
        if kind == 2:
            length, at = _varint(message, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ImageFormatError(f"wire type {kind} is not known")
        if at + length > len(message):
            raise ImageFormatError("a message is cut short")
        fields.append((number, message[at : at + length]))
        at += length
    return fields


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ImageFormatError("a number is cut short")


def _number(values: dict[int, int | bytes], field: int) -> int:
    value = values.get(field, 0)
    if not isinstance(value, int):
        raise ImageFormatError(f"field {field} is not a number")
    return value
