"""A node's own copies of chunks from a distant store, up to a number of bytes; the least used go
first.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from agents.checkpoints.blobs import Blob, Blobs, Folder
from agents.checkpoints.errors import CheckpointError


class Cached:
    """Blobs with a folder in front that keeps chunks; everything else passes through.

    A cache that cannot be written (a full disk) is passed by: it never makes a store or a fetch
    fail.
    """

    def __init__(self, blobs: Blobs, folder: Path, limit: int) -> None:
        self.window, self.lanes = blobs.window, blobs.lanes
        self._blobs = blobs
        self._near = Folder(folder)
        self._limit = limit
        self._lock = threading.Lock()
        kept = sorted(self._near.find("c/"), key=lambda blob: blob.modified)
        self._sizes = OrderedDict((blob.key, blob.size) for blob in kept)
        self._total = sum(self._sizes.values())
        self._evict()

    def get(self, keys: Sequence[str]) -> list[bytes | None]:
        found = [self._recall(key) for key in keys]
        missing = [at for at, data in enumerate(found) if data is None]
        far = self._blobs.get([keys[at] for at in missing]) if missing else []
        self._keep({keys[at]: data for at, data in zip(missing, far, strict=True) if data})
        for at, data in zip(missing, far, strict=True):
            found[at] = data
        return found

    def has(self, digests: Collection[bytes]) -> set[bytes]:
        return self._blobs.has(digests)

    def put(self, blobs: Mapping[str, bytes]) -> None:
        self._blobs.put(blobs)
        self._keep(blobs)

    def commit(self, key: str, data: bytes) -> None:
        self._blobs.commit(key, data)

    def delete(self, keys: Collection[str]) -> None:
        self._blobs.delete(keys)

    def find(self, prefix: str) -> list[Blob]:
        return self._blobs.find(prefix)

    def refresh(self) -> None:
        self._blobs.refresh()

    def forget(self) -> None:
        self._blobs.forget()

    def tidy(self, before: float) -> None:
        self._blobs.tidy(before)
        self._near.tidy(before)

    def drop(self, key: str) -> None:
        """Throw away the node's copy of a chunk: it turned out to be damaged."""
        with self._lock:
            self._total -= self._sizes.pop(key, 0)
        self._near.delete([key])

    def _recall(self, key: str) -> bytes | None:
        with self._lock:
            if key not in self._sizes:
                return None
            self._sizes.move_to_end(key)
        with contextlib.suppress(OSError):
            os.utime(self._near.path / key)
        return self._near.get([key])[0]

    def _keep(self, blobs: Mapping[str, bytes]) -> None:
        for key, data in blobs.items():
            if not key.startswith("c/") or len(data) > self._limit:
                continue
            try:
                self._near.put({key: data})
            except CheckpointError:
                return
            with self._lock:
                self._total += len(data) - self._sizes.pop(key, 0)
                self._sizes[key] = len(data)
        self._evict()

    def _evict(self) -> None:
        gone: list[str] = []
        with self._lock:
            while self._total > self._limit and self._sizes:
                key, size = self._sizes.popitem(last=False)
                self._total -= size
                gone.append(key)
        with contextlib.suppress(CheckpointError):
            self._near.delete(gone)
