"""Images in CRIU's format, made of a few areas, for tests without CRIU."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
FILE_PRIVATE = 1 << 6
ANONYMOUS = 1 << 9
STACK = 0x7FFF_0000_0000


@dataclass(frozen=True)
class Area:
    """One mapping and the pages of it that are there; ``offset`` is in the file that it maps."""

    start: int
    content: bytes
    status: int = ANONYMOUS
    offset: int = 0


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def message(fields: Sequence[tuple[int, int | bytes]]) -> bytes:
    out = b""
    for number, value in fields:
        if isinstance(value, bytes):
            out += varint(number << 3 | 2) + varint(len(value)) + value
        else:
            out += varint(number << 3) + varint(value)
    return out


def image(magic: int, messages: Sequence[bytes]) -> bytes:
    head = struct.pack("<II", 0x54564319, magic)
    return head + b"".join(struct.pack("<I", len(each)) + each for each in messages)


def write(folder: Path, areas: Sequence[Area]) -> None:
    """Write the images of one process whose memory is these areas, in order of address."""
    folder.mkdir(parents=True, exist_ok=True)
    maps = [message([(1, 1)])]
    vmas: list[tuple[int, int | bytes]] = [(5, STACK)]
    pages = b""
    for area in areas:
        count = len(area.content) // PAGE
        maps.append(message([(1, area.start), (2, count), (4, 1 << 2)]))
        vma = message(
            [(1, area.start), (2, area.start + count * PAGE), (3, area.offset), (7, area.status)]
        )
        vmas.append((14, vma))
        pages += area.content
    (folder / "pagemap-7.img").write_bytes(image(0x56084025, maps))
    (folder / "mm-7.img").write_bytes(image(0x57492820, [message(vmas)]))
    (folder / "pages-1.img").write_bytes(pages)
    (folder / "core-7.img").write_bytes(b"registers")


def dump_again(images: Path, folder: Path) -> None:
    """Write images as CRIU does: page by page into whatever stands there under their names."""
    for path in sorted(images.iterdir()):
        into = os.open(folder / path.name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with path.open("rb") as file:
                at = 0
                while sent := os.sendfile(into, file.fileno(), at, 1 << 20):
                    at += sent
        finally:
            os.close(into)
