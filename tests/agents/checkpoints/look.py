"""What a folder looks like, to compare two of them."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path


def look(root: Path) -> dict[bytes, tuple[object, ...]]:
    """Return every name below a folder with its kind, mode, time and content."""
    top = os.fsencode(root)
    found: dict[bytes, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            path = folder + b"/" + name
            info = os.lstat(path)
            content: object = None
            if stat.S_ISLNK(info.st_mode):
                content = os.readlink(path)  # noqa: PTH115 - names are bytes here
            elif stat.S_ISREG(info.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
            key = os.path.relpath(path, top)
            found[key] = (info.st_mode, info.st_mtime_ns, info.st_uid, info.st_gid, content)
    return found


def harm_chunks(store: Path) -> None:
    """Alter one byte of every chunk in a local store: just behind its digest."""
    for pack in (store / "p").iterdir():
        data = bytearray(pack.read_bytes())
        count = struct.unpack("<I", data[-12:-8])[0]
        for slot in struct.iter_unpack("<32sQI", data[-12 - 44 * count : -12]):
            data[slot[1] + 8] ^= 1
        pack.write_bytes(data)
