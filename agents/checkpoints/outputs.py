"""A stored workspace's files, to list and to download without making them anywhere."""

from __future__ import annotations

import os
import stat
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

from agents.checkpoints.dump import BATCH, WORKSPACE
from agents.checkpoints.errors import NotStoredError
from agents.checkpoints.manifest import Entry, Extent, Manifest
from agents.checkpoints.store import Store

_BLOCK = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One file of a stored workspace; ``mtime`` in wall-clock seconds."""

    path: str
    size: int
    mtime: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """An opened file: its size, and its content piece by piece, each checked before it is handed
    out.
    """

    size: int
    mtime: float
    content: Iterator[bytes]


def list_files(store: Store, key: str) -> list[StoredFile]:
    """List the regular files of a stored workspace by path. Raises ``DamagedError``."""
    files = _files(store.load(key))
    return [
        StoredFile(path=path, size=entry.size, mtime=entry.mtime_ns / 1e9)
        for path, entry in sorted(files.items())
    ]


def open_file(store: Store, key: str, path: str) -> Download:
    """Open one file of a stored workspace. Raises ``NotStoredError`` or ``DamagedError``."""
    entry = _files(store.load(key)).get(path)
    if entry is None:
        raise NotStoredError(f"There is no file {path!r} among the stored files.")
    content = _content(store, entry)
    return Download(size=entry.size, mtime=entry.mtime_ns / 1e9, content=content)


def zip_files(store: Store, key: str, below: str = "") -> Iterator[bytes]:
    """Yield a zip archive of all files (of the folder ``below``) as it is made; none is held in
    memory.

    Raises ``NotStoredError`` or ``DamagedError`` before the first byte where the manifest tells.
    """
    files = _files(store.load(key))
    prefix = f"{below.strip('/')}/" if below.strip("/") else ""
    chosen = {path: entry for path, entry in sorted(files.items()) if path.startswith(prefix)}
    if prefix and not chosen:
        raise NotStoredError(f"There is no folder {below!r} among the stored files.")
    return _zip(store, chosen)


class _Sink:
    """What a zip archive is written to: bytes to be taken away again."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self.parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def take(self) -> bytes:
        data = b"".join(self.parts)
        self.parts.clear()
        return data


def _zip(store: Store, files: dict[str, Entry]) -> Iterator[bytes]:
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:  # type: ignore[call-overload]
        for path, entry in files.items():
            # Zip knows no year before 1980.
            at = time.gmtime(max(entry.mtime_ns / 1e9, 315532800))[:6]
            info = zipfile.ZipInfo(path.encode("utf-8", "replace").decode(), at)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (stat.S_IFREG | entry.mode & 0o777) << 16
            with archive.open(info, "w", force_zip64=entry.size >= 1 << 31) as member:
                for data in _content(store, entry):
                    member.write(data)
                    yield sink.take()
    yield sink.take()


def _content(store: Store, entry: Entry) -> Iterator[bytes]:
    at = 0
    for batch in _batches(entry.extents):
        for extent, data in zip(batch, store.read(batch), strict=True):
            yield from _zeros(extent.offset - at)
            yield data
            at = extent.offset + extent.length
    yield from _zeros(entry.size - at)


def _batches(extents: list[Extent]) -> Iterator[list[Extent]]:
    batch: list[Extent] = []
    for extent in extents:
        batch.append(extent)
        if sum(part.length for part in batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _zeros(count: int) -> Iterator[bytes]:
    while count > 0:
        yield bytes(min(count, _BLOCK))
        count -= _BLOCK


def _files(manifest: Manifest) -> dict[str, Entry]:
    """Return the files by path; a hard link is listed with the content of the file that it is the
    same as.
    """
    files: dict[str, Entry] = {}
    by_path: dict[bytes, Entry] = {}
    for entry in manifest.tree(WORKSPACE):
        by_path[entry.path] = entry
        found = by_path.get(entry.target) if entry.kind == "same" else entry
        if found is not None and found.kind == "file":
            files[os.fsdecode(entry.path)] = found
    return files
