"""What a chunk store stands on: named pieces of bytes somewhere, and the one on a local folder.

Keys are relative paths of lower-case words and hexadecimal digits; a blob is there whole or not at
all.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agents.checkpoints.errors import told

LASTING = ("p/", "m/")
"""Folders of what a restore reads. Claims and rounds mean nothing after a machine went down."""


@dataclass(frozen=True, slots=True)
class Blob:
    """One blob as a listing shows it; ``modified`` is in seconds of the storage's wall clock."""

    key: str
    size: int
    modified: float


def chunk_key(digest: bytes) -> str:
    """Return where a chunk lies in the store."""
    name = digest.hex()
    return f"c/{name[:2]}/{name}"


class Blobs(Protocol):
    """Bytes by key. Every verb may be called from many threads. Errors are ``CheckpointError``."""

    window: int
    """Bytes of memory that a chunk should hold here, about."""
    lanes: int
    """Threads that make good use of it."""

    def get(self, keys: Sequence[str]) -> list[bytes | None]:
        """Read blobs; ``None`` for one that is not there."""

    def has(self, digests: Collection[bytes]) -> set[bytes]:
        """Return the chunks that are there. May miss one, may not invent one: see ``forget``."""

    def put(self, blobs: Mapping[str, bytes]) -> None:
        """Write blobs, each whole or not at all."""

    def commit(self, key: str, data: bytes) -> None:
        """Write a blob after making sure that all that was put before lasts."""

    def delete(self, keys: Collection[str]) -> None:
        """Delete blobs; one that is not there is no error."""

    def find(self, prefix: str) -> list[Blob]:
        """List the blobs whose key begins with a folder's name and a slash."""

    def refresh(self) -> None:
        """Look anew at what others have put."""

    def forget(self) -> None:
        """Trust nothing that was seen before: something was deleted."""

    def tidy(self, before: float) -> None:
        """Remove half-written blobs older than a wall-clock time."""


class Folder:
    """Blobs as plain files below a local (or shared) folder.

    A blob is written under a hidden name beside its own and renamed. With ``durable``, packs of
    chunks are on disk before they get their name, so before any store relies on them, and
    ``commit`` waits for the names and for its own blob. Else the kernel writes it all back within
    the half minute.
    """

    window = 64 * 1024

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self.path = path
        self.lanes = os.cpu_count() or 1
        self._durable = durable
        self._writer = secrets.token_hex(6)
        self._numbers = itertools.count()
        with told(f"The chunk store {path}"):
            path.mkdir(parents=True, exist_ok=True)

    def get(self, keys: Sequence[str]) -> list[bytes | None]:
        return [self._read(key) for key in keys]

    def has(self, digests: Collection[bytes]) -> set[bytes]:
        # An empty file is what a crashed machine may leave of a blob that was not written back.
        return {digest for digest in digests if self._size(chunk_key(digest))}

    def put(self, blobs: Mapping[str, bytes]) -> None:
        with told(f"The chunk store {self.path}"):
            for key, data in blobs.items():
                self._write(key, data, sync=self._durable and key.startswith(LASTING))

    def commit(self, key: str, data: bytes) -> None:
        with told(f"The chunk store {self.path}"):
            self._write(key, data, sync=self._durable)
            if self._durable:
                for folder in (*(self.path / top for top in LASTING), self.path):
                    _sync_names(folder)

    def delete(self, keys: Collection[str]) -> None:
        with told(f"The chunk store {self.path}"):
            for key in keys:
                (self.path / key).unlink(missing_ok=True)
            for parent in {os.path.dirname(key) for key in keys if key.startswith("i/")}:  # noqa: PTH120
                with contextlib.suppress(OSError):
                    (self.path / parent).rmdir()

    def find(self, prefix: str) -> list[Blob]:
        with told(f"The chunk store {self.path}"):
            return list(self._walk(prefix.rstrip("/"), hidden=False))

    def refresh(self) -> None:
        """Nothing is remembered here."""

    def forget(self) -> None:
        """Nothing is remembered here."""

    def tidy(self, before: float) -> None:
        with told(f"The chunk store {self.path}"):
            for top in ("c", "p", "m", "i", "g"):
                for blob in self._walk(top, hidden=True):
                    if blob.modified < before:
                        (self.path / blob.key).unlink(missing_ok=True)

    def _read(self, key: str) -> bytes | None:
        with told(f"The chunk store {self.path}"):
            try:
                return (self.path / key).read_bytes()
            except FileNotFoundError:
                return None

    def _size(self, key: str) -> int:
        try:
            return os.stat(f"{self.path}/{key}").st_size  # noqa: PTH116 - asked for every chunk
        except FileNotFoundError:
            return 0

    def _write(self, key: str, data: bytes, *, sync: bool) -> None:
        path = f"{self.path}/{key}"
        folder, name = os.path.split(path)
        half = f"{folder}/.{name}.{self._writer}.{next(self._numbers)}"
        try:
            try:
                file = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileNotFoundError:
                os.makedirs(folder, exist_ok=True)  # noqa: PTH103
                file = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(file, rest) :]
                if sync:
                    os.fsync(file)
            finally:
                os.close(file)
            os.rename(half, path)  # noqa: PTH104
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(half)  # noqa: PTH108
            raise

    def _walk(self, top: str, *, hidden: bool) -> list[Blob]:
        found: list[Blob] = []
        try:
            items = list(os.scandir(self.path / top))
        except (FileNotFoundError, NotADirectoryError):
            return found
        for item in items:
            if item.is_dir(follow_symlinks=False):
                found += self._walk(f"{top}/{item.name}", hidden=hidden)
            elif item.name.startswith(".") == hidden:
                with contextlib.suppress(FileNotFoundError):
                    stat = item.stat(follow_symlinks=False)
                    found.append(Blob(f"{top}/{item.name}", stat.st_size, stat.st_mtime))
        return found


def _sync_names(folder: Path) -> None:
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        os.fsync(file)
    finally:
        os.close(file)
