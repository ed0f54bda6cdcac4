"""A folder as a list of entries, and the pieces of its files that have to be read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import blake3

from agents.checkpoints.errors import ChangedError
from agents.checkpoints.manifest import Entry, Extent

PIECE = 256 * 1024
"""Bytes of one chunk of a file that is not cut otherwise."""


@dataclass(slots=True)
class Piece:
    """A part of a file: to be read, or known by its digest before."""

    entry: Entry
    path: bytes
    """The file to read it from."""
    offset: int
    """Where it is in its entry, in bytes."""
    length: int
    digest: bytes = b""
    elsewhere: int | None = None
    """Where it is in the file, if not there."""

    @property
    def place(self) -> int:
        """Where it is in the file to read it from, in bytes."""
        return self.offset if self.elsewhere is None else self.elsewhere


@dataclass(slots=True)
class Tree:
    """The entries of a folder, parents first, and the pieces of its files in order."""

    entries: list[Entry] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)


def scan(
    root: Path,
    *,
    base: Mapping[bytes, Entry] | None = None,
    cuts: Mapping[str, list[int]] | None = None,
    without: Collection[bytes] = (),
) -> Tree:
    """List a folder without following links. Sockets and devices are left out: they cannot be kept.

    A file that ``base`` has with the same inode, size and times is not read again. ``cuts`` gives
    the lengths of the pieces for files of the top folder; names ``without`` are passed over.
    Raises ``ChangedError`` if a file goes away meanwhile.
    """
    tree = Tree()
    seen: dict[tuple[int, int], bytes] = {}
    top = os.fsencode(root)
    for path, info in _walk(top, b""):
        entry = None if path in without else _entry(top, path, info, seen)
        if entry is None:
            continue
        tree.entries.append(entry)
        if entry.kind == "file" and entry.size:
            lengths = (cuts or {}).get(os.fsdecode(path))
            before = (base or {}).get(path)
            tree.pieces += _pieces(os.path.join(top, path), entry, before, lengths)  # noqa: PTH118
    return tree


def _walk(top: bytes, path: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield each name below a folder with its status, a folder before what lies in it."""
    yield path, os.lstat(top)
    folders = [path]
    while folders:
        folder = folders.pop()
        for item in sorted(os.scandir(os.path.join(top, folder)), key=lambda item: item.name):  # noqa: PTH118
            inner = folder + b"/" + item.name if folder else item.name
            try:
                info = item.stat(follow_symlinks=False)
            except FileNotFoundError as error:
                raise _changed(inner) from error
            yield inner, info
            if stat.S_ISDIR(info.st_mode):
                folders.append(inner)


def _entry(
    top: bytes, path: bytes, info: os.stat_result, seen: dict[tuple[int, int], bytes]
) -> Entry | None:
    entry = Entry(
        path=path,
        kind="folder",
        mode=stat.S_IMODE(info.st_mode),
        uid=info.st_uid,
        gid=info.st_gid,
        mtime_ns=info.st_mtime_ns,
    )
    if stat.S_ISLNK(info.st_mode):
        entry.kind, entry.target = "link", os.readlink(os.path.join(top, path))  # noqa: PTH115, PTH118
    elif stat.S_ISFIFO(info.st_mode):
        entry.kind = "pipe"
    elif stat.S_ISREG(info.st_mode):
        entry.kind, entry.size = "file", info.st_size
        entry.inode, entry.ctime_ns = info.st_ino, info.st_ctime_ns
        if info.st_nlink > 1:
            first = seen.setdefault((info.st_dev, info.st_ino), path)
            if first != path:
                entry.kind, entry.target, entry.size = "same", first, 0
    elif not stat.S_ISDIR(info.st_mode):
        return None
    return entry


def _pieces(
    path: bytes, entry: Entry, before: Entry | None, lengths: list[int] | None
) -> Iterator[Piece]:
    if before is not None and _unchanged(entry, before):
        for extent in before.extents:
            yield Piece(entry, path, extent.offset, extent.length, extent.digest)
        return
    if lengths is not None:
        offset = 0
        for length in lengths:
            yield Piece(entry, path, offset, length)
            offset += length
        return
    upto = 0
    for start, end in _data(path, entry):
        for offset in range(max(upto, start - start % PIECE), end, PIECE):
            upto = offset + PIECE
            yield Piece(entry, path, offset, min(PIECE, entry.size - offset))


def _unchanged(entry: Entry, before: Entry) -> bool:
    return before.kind == "file" and (
        (entry.inode, entry.size, entry.mtime_ns, entry.ctime_ns)
        == (before.inode, before.size, before.mtime_ns, before.ctime_ns)
    )


def _data(path: bytes, entry: Entry) -> Iterator[tuple[int, int]]:
    """Yield where a file has data, from its first to its last byte; what lies between is a hole."""
    file = open_piece(path)
    try:
        end = 0
        while end < entry.size:
            try:
                start = os.lseek(file, end, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return
                raise
            end = min(os.lseek(file, start, os.SEEK_HOLE), entry.size)
            yield start, end
    finally:
        os.close(file)


def open_piece(path: bytes) -> int:
    """Open a file for reading, never through a link in its last place, never waiting for a pipe."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _changed(path) from error


@lru_cache(maxsize=4096)
def digest_of_zeros(length: int) -> bytes:
    """The name that a piece of zeros would have, which is given none."""
    return blake3.blake3(bytes(length)).digest()


def extent_of(piece: Piece) -> Extent:
    """Return what the manifest says of a piece whose digest is known."""
    return Extent(piece.offset, piece.length, piece.digest)


def _changed(path: bytes) -> ChangedError:
    return ChangedError(
        f"{os.fsdecode(path)!r} changed while it was stored; its replica must be frozen."
    )
