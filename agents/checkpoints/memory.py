"""Where to cut CRIU's page files, so that equal memory gives equal chunks.

``pages-N.img`` holds the pages of a process one after the other: one new page shifts all that
follow, and pieces cut at fixed file offsets share nothing with the dump before. ``pagemap-*.img``
says which virtual address each page has. Pieces are therefore cut at windows of the address space,
aligned to an anchor that moves with the process's own random layout (its heap's start, the end of
its topmost file mapping), so that the same data falls into the same piece in later dumps and in
other replicas.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
WINDOW = 64 * 1024
"""Bytes of address space in one chunk; the benchmark of the store tells what other sizes would
give.
"""

_COMMON_MAGIC = 0x54564319
_PAGEMAP_MAGIC = 0x56084025
_MM_MAGIC = 0x57492820
_PRESENT = 1 << 2
_FILE_MAPPED = 1 << 6 | 1 << 7

Fields = list[tuple[int, int | bytes]]


class ImageFormatError(ValueError):
    """A file of CRIU's images could not be read; it is then cut at fixed offsets."""


@dataclass(frozen=True, slots=True, order=True)
class Area:
    """One mapping of a process: where it lies, and the offset in its file if it maps one."""

    start: int
    end: int
    file_offset: int
    of_file: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """What moves with a process's random layout."""

    areas: tuple[Area, ...]
    """In order of address."""
    heap: int
    top: int
    """The end of the topmost file mapping below the stack: in most programs, of the loader."""

    def anchor(self, address: int) -> int:
        """Return an address that keeps its distance to this one, whatever the layout's random
        shift.
        """
        at = bisect_right(self.areas, address, key=lambda area: area.start) - 1
        if at >= 0 and self.areas[at].of_file and address < self.areas[at].end:
            return self.areas[at].start - self.areas[at].file_offset
        return self.heap if abs(address - self.heap) < abs(self.top - address) else self.top


def cuts(images: Path, window: int = WINDOW) -> dict[str, list[int]]:
    """Return for each page file of the folder the lengths of the pieces to cut it into, in order.

    A page file that cannot be understood, or whose size is not what its pagemap says, is left out.
    """
    found: dict[str, list[int]] = {}
    for pagemap in sorted(images.glob("pagemap-*.img")):
        try:
            name, lengths = _cut(pagemap, window)
        except (ImageFormatError, OSError):
            continue
        pages = images / name
        if pages.is_file() and pages.stat().st_size == sum(lengths):
            found[name] = lengths
    return found


def _cut(pagemap: Path, window: int) -> tuple[str, list[int]]:
    entries = _entries(pagemap, _PAGEMAP_MAGIC)
    head = dict(_fields(next(entries, b"")))
    layout = _layout(pagemap.with_name(pagemap.name.replace("pagemap", "mm")))
    lengths: list[int] = []
    open_window: tuple[int, int] | None = None
    for entry in entries:
        values = dict(_fields(entry))
        address, pages = _number(values, 1), _number(values, 5) or _number(values, 2)
        flags = _number(values, 4) if 4 in values else 0 if _number(values, 3) else _PRESENT
        if not flags & _PRESENT:
            continue
        end = address + pages * PAGE
        anchor = layout.anchor(address) if layout else 0
        while address < end:
            number = (address - anchor) // window
            upto = min(end, anchor + (number + 1) * window)
            if open_window == (anchor, number):
                lengths[-1] += upto - address
            else:
                lengths.append(upto - address)
                open_window = (anchor, number)
            address = upto
    return f"pages-{_number(head, 1)}.img", lengths


def _layout(path: Path) -> Layout | None:
    """Read a process's areas; shared memory has no ``mm`` image and needs none: its addresses are
    offsets.
    """
    if not path.is_file():
        return None
    areas: list[Area] = []
    values: dict[int, int] = {}
    for number, value in _fields(next(_entries(path, _MM_MAGIC), b"")):
        if number == 14 and isinstance(value, bytes):
            vma = dict(_fields(value))
            of_file = bool(_number(vma, 7) & _FILE_MAPPED)
            areas.append(Area(_number(vma, 1), _number(vma, 2), _number(vma, 3), of_file))
        elif isinstance(value, int):
            values[number] = value
    heap, stack = values.get(6, 0), values.get(5, 0)
    top = max((area.end for area in areas if area.of_file and area.end < stack), default=0)
    return Layout(tuple(sorted(areas)), heap, top)


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
