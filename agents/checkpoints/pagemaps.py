"""CRIU's page maps, read and written: which addresses the pages of a page file belong to."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PAGE = 4096
PARENT = 1 << 0
"""A run whose pages lie in the images that these lean on, at the same addresses."""
PRESENT = 1 << 2

_COMMON_MAGIC = 0x54564319
_PAGEMAP_MAGIC = 0x56084025

Fields = list[tuple[int, int | bytes]]


class ImageFormatError(ValueError):
    """A file of CRIU's images could not be read."""


@dataclass(frozen=True, slots=True)
class Run:
    """Pages that follow each other in memory; those with ``PRESENT`` do so in the page file too."""

    address: int
    pages: int
    flags: int = PRESENT


@dataclass(slots=True)
class PageMap:
    """One ``pagemap-*.img``: its page file's name and the runs, in the order of both."""

    name: str
    head: bytes
    runs: list[Run] = field(default_factory=list)
    wide: bool = True
    """Whether counts stand where CRIU 4 writes them."""

    def present(self) -> list[Run]:
        """Return the runs whose pages are in the page file."""
        return [run for run in self.runs if run.flags & PRESENT]

    def size(self) -> int:
        """Bytes of the page file."""
        return sum(run.pages for run in self.present()) * PAGE


def read_map(path: Path) -> PageMap:
    """Read a ``pagemap-*.img``. Raises ``ImageFormatError`` or ``OSError``."""
    entries = _entries(path, _PAGEMAP_MAGIC)
    head = next(entries, b"")
    found = PageMap(f"pages-{_number(dict(_fields(head)), 1)}.img", head, wide=False)
    for entry in entries:
        values = dict(_fields(entry))
        found.wide |= 5 in values
        flags = _number(values, 4) if 4 in values else PARENT if _number(values, 3) else PRESENT
        pages = _number(values, 5) or _number(values, 2)
        found.runs.append(Run(_number(values, 1), pages, flags))
    return found


def write_map(path: Path, map: PageMap, runs: Sequence[Run]) -> None:
    """Write a map with other runs in the file of that name."""
    messages = [map.head]
    for run in runs:
        narrow, wide = (0, run.pages) if map.wide else (run.pages, 0)
        fields = [(1, run.address), (2, narrow), (4, run.flags), *([(5, wide)] if wide else [])]
        messages.append(b"".join(_packed(number << 3) + _packed(value) for number, value in fields))
    data = struct.pack("<II", _COMMON_MAGIC, _PAGEMAP_MAGIC)
    data += b"".join(struct.pack("<I", len(each)) + each for each in messages)
    path.write_bytes(data)


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


def _packed(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(values: dict[int, int | bytes], field: int) -> int:
    value = values.get(field, 0)
    if not isinstance(value, int):
        raise ImageFormatError(f"field {field} is not a number")
    return value
