"""Chunks on a local (or shared) folder, some dozens to a file: making a file a chunk would cost
more.

A pack is written once, under a hidden name, and renamed: ``p/<name>`` is its chunks, each after its
digest, then a table with a slot a chunk, then how many slots there are. To delete a chunk, its slot
and its digest are overwritten with zeros in place and its blocks are given back to the file system;
a pack without chunks goes. Both can be done twice, or by two at once, to the same effect. Each
process keeps all tables in memory, reads those of new packs when the folder has changed, and finds
out that one of its chunks is gone by ``forget`` or by the digest that is no longer there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import struct
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.checkpoints.blobs import Blob, Folder
from agents.checkpoints.errors import told

_DIGEST = 32
_SLOT = struct.Struct("<32sQI")
"""A chunk's digest, where its bytes begin, how many they are; all zero once it is deleted."""
_TAIL = struct.Struct("<I8s")
_MAGIC = b"tidepack"
_SLOTS = 1 << 20
_PUNCH = 0x01 | 0x02  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_SETTLED_NS = 1_000_000_000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


@dataclass(slots=True)
class _Pack:
    """One pack as it was when its table was last read."""

    number: int
    name: str
    table: bytes
    stamp: int
    """Its time of change, in ns; 0 if it may have changed again without showing it."""


class Packs(Folder):
    """A folder whose chunks lie in packs; everything else is a file of its own."""

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        super().__init__(path, durable=durable)
        self._lock = threading.RLock()
        self._packs: dict[str, _Pack] = {}
        self._numbers_of: dict[int, _Pack] = {}
        self._next = 0
        self._where: dict[bytes, list[int]] = {}
        """Digest -> places, each a pack's number and a slot; more than one if two stored it at
        once.
        """
        self._seen = -1

    def get(self, keys: Sequence[str]) -> list[bytes | None]:
        digests = [_digest(key) for key in keys]
        if not any(digests):
            return super().get(keys)
        with told(f"The chunk store {self.path}"):
            found = self._read_all({digest for digest in digests if digest})
            missing = {digest for digest in digests if digest and digest not in found}
            if missing:
                self._scan(again=True)
                found |= self._read_all(missing)
        plain = super().get
        return [
            found.get(digest) if digest else plain([key])[0]
            for key, digest in zip(keys, digests, strict=True)
        ]

    def has(self, digests: Collection[bytes]) -> set[bytes]:
        wanted = set(digests)
        with self._lock, told(f"The chunk store {self.path}"):
            if not wanted <= self._where.keys():
                self._scan()
            return wanted & self._where.keys()

    def put(self, blobs: Mapping[str, bytes]) -> None:
        chunks = {_digest(key): data for key, data in blobs.items() if _digest(key)}
        super().put({key: data for key, data in blobs.items() if not _digest(key)})
        if chunks:
            name = secrets.token_hex(12)
            super().put({f"p/{name}": _pack(chunks)})
            with self._lock, told(f"The chunk store {self.path}"):
                self._load(name)

    def delete(self, keys: Collection[str]) -> None:
        super().delete([key for key in keys if not _digest(key)])
        chunks = {_digest(key) for key in keys} - {b""}
        if not chunks:
            return
        with self._lock, told(f"The chunk store {self.path}"):
            slots: dict[int, list[int]] = {}
            for digest in chunks:
                for place in self._where.get(digest, []):
                    slots.setdefault(place // _SLOTS, []).append(place % _SLOTS)
            for number, numbers in slots.items():
                self._erase(self._numbers_of[number], numbers)

    def find(self, prefix: str) -> list[Blob]:
        if not prefix.startswith("c/"):
            return super().find(prefix)
        with self._lock, told(f"The chunk store {self.path}"):
            self._scan()
            listed: list[Blob] = []
            for digest, places in self._where.items():
                name = digest.hex()
                key, size = f"c/{name[:2]}/{name}", sum(self._slot(place)[2] for place in places)
                if key.startswith(prefix):
                    listed.append(Blob(key, size, 0.0))
            return listed

    def refresh(self) -> None:
        with self._lock, told(f"The chunk store {self.path}"):
            self._scan()

    def forget(self) -> None:
        with self._lock, told(f"The chunk store {self.path}"):
            self._scan(again=True)

    def _slot(self, place: int) -> tuple[bytes, int, int]:
        table = self._numbers_of[place // _SLOTS].table
        digest, offset, length = _SLOT.unpack_from(table, place % _SLOTS * _SLOT.size)
        return digest, offset, length

    def _read_all(self, digests: set[bytes]) -> dict[bytes, bytes]:
        """Read chunks, each pack opened once; one that is not where it should be is left out."""
        wanted: dict[str, list[tuple[bytes, int, int]]] = {}
        with self._lock:
            if not digests <= self._where.keys():
                self._scan()
            for digest in digests & self._where.keys():
                place = self._where[digest][0]
                name = self._numbers_of[place // _SLOTS].name
                wanted.setdefault(name, []).append(self._slot(place))
        found: dict[bytes, bytes] = {}
        for name, slots in wanted.items():
            with (
                contextlib.suppress(FileNotFoundError),
                (self.path / "p" / name).open("rb") as file,
            ):
                for digest, offset, length in slots:
                    data = os.pread(file.fileno(), _DIGEST + length, offset - _DIGEST)
                    if data[:_DIGEST] == digest:
                        found[digest] = data[_DIGEST:]
        return found

    def _scan(self, *, again: bool = False) -> None:
        """Read the tables of new packs; ``again``: of all that may have changed, too."""
        with self._lock:
            folder = self.path / "p"
            try:
                changed = folder.stat().st_mtime_ns
                if changed == self._seen and not again:
                    return
                names = {name for name in os.listdir(folder) if not name.startswith(".")}  # noqa: PTH208
            except FileNotFoundError:
                changed, names = -1, set()
            self._seen = changed
            for name in self._packs.keys() - names:
                self._drop(self._packs[name])
            for name in names:
                if name not in self._packs or (again and self._changed(self._packs[name])):
                    self._load(name)

    def _changed(self, pack: _Pack) -> bool:
        try:
            return (self.path / "p" / pack.name).stat().st_mtime_ns != pack.stamp
        except FileNotFoundError:
            return True

    def _load(self, name: str) -> None:
        known = self._packs.get(name)
        if known:
            self._drop(known)
        try:
            table, stamp = _table(self.path / "p" / name)
        except FileNotFoundError:
            return
        pack = _Pack(self._next, name, table, stamp)
        self._next += 1
        self._packs[name] = self._numbers_of[pack.number] = pack
        for slot, (digest, _, length) in enumerate(_SLOT.iter_unpack(table)):
            if length:
                self._where.setdefault(digest, []).append(pack.number * _SLOTS + slot)

    def _drop(self, pack: _Pack) -> None:
        del self._packs[pack.name], self._numbers_of[pack.number]
        for slot, (digest, _, length) in enumerate(_SLOT.iter_unpack(pack.table)):
            if length:
                places = self._where[digest]
                places.remove(pack.number * _SLOTS + slot)
                if not places:
                    del self._where[digest]

    def _erase(self, pack: _Pack, slots: Iterable[int]) -> None:
        path = self.path / "p" / pack.name
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            self._drop(pack)
            return
        try:
            first = os.fstat(file).st_size - _TAIL.size - len(pack.table)
            for slot in slots:
                os.pwrite(file, bytes(_SLOT.size), first + slot * _SLOT.size)
                _, offset, _ = _SLOT.unpack_from(pack.table, slot * _SLOT.size)
                os.pwrite(file, bytes(_DIGEST), offset - _DIGEST)
            self._load(pack.name)
            left = self._packs[pack.name].table if pack.name in self._packs else b""
            if any(left):
                _punch(file, left, first)
            else:
                path.unlink(missing_ok=True)
        finally:
            os.close(file)


def _pack(chunks: Mapping[bytes, bytes]) -> bytes:
    """Return a pack's bytes."""
    parts: list[bytes] = []
    table: list[bytes] = []
    at = 0
    for digest, data in chunks.items():
        table.append(_SLOT.pack(digest, at + _DIGEST, len(data)))
        parts += (digest, data)
        at += _DIGEST + len(data)
    return b"".join([*parts, *table, _TAIL.pack(len(table), _MAGIC)])


def _table(path: Path) -> tuple[bytes, int]:
    """Read a pack's table; empty if the pack is cut short, as a crashed machine may leave it."""
    with path.open("rb") as file:
        now = os.fstat(file.fileno())
        end = now.st_size - _TAIL.size
        tail = os.pread(file.fileno(), _TAIL.size, max(end, 0))
        count, magic = _TAIL.unpack(tail) if len(tail) == _TAIL.size else (0, b"")
        size = count * _SLOT.size
        table = (
            os.pread(file.fileno(), size, end - size) if magic == _MAGIC and size <= end else b""
        )
        # A change in the same tick of the file system's clock would not show.
        settled = abs(time.time_ns() - now.st_mtime_ns) > _SETTLED_NS
        return table, now.st_mtime_ns if settled else 0


def _punch(file: int, table: bytes, end: int) -> None:
    """Give back the blocks between the chunks that are left; no harm where that cannot be done."""
    at = 0
    for _, offset, length in sorted(_SLOT.iter_unpack(table), key=lambda slot: slot[1]):
        if length:
            if offset - _DIGEST > at:
                _libc.fallocate(file, _PUNCH, at, offset - _DIGEST - at)
            at = offset + length
    if end > at:
        _libc.fallocate(file, _PUNCH, at, end - at)


def _digest(key: str) -> bytes:
    """Return the digest that a chunk's key names; empty for any other key."""
    return bytes.fromhex(key[5:]) if key.startswith("c/") else b""
