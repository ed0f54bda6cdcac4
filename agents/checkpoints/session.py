"""One store in progress: claims its chunks, writes those that are not there, commits a manifest or
leaves none.

Why claims: a collection must not delete a chunk that this store has just found to be there (or has
just written anew). Each batch does, in this order: 1. write a claim that names its chunks; 2. look
at what collections have condemned, and wait for one that has condemned a chunk of ours; 3. look
which chunks are there; 4. write the others. A collection first writes what it condemns and reads
claims after that, so at least one of the two sees the other. Claims go when the manifest is there,
which then protects the chunks.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from agents.checkpoints.blobs import chunk_key
from agents.checkpoints.collection import condemned, discard
from agents.checkpoints.errors import CheckpointError, StoreUnreachableError
from agents.checkpoints.manifest import Manifest, seal
from agents.checkpoints.store import Store, compress

WAIT_S = 150.0
"""Longest wait for a collection that is deleting a chunk we need."""


class Session:
    """A context manager: leaving it without ``commit`` takes back what it wrote."""

    def __init__(self, store: Store, *, pause: Callable[[float], None] = time.sleep) -> None:
        self.id = secrets.token_hex(16)
        self.chunks_new = 0
        self.bytes_new = 0
        self.bytes_stored = 0
        self._store = store
        self._pause = pause
        self._lock = threading.Lock()
        self._claims: list[str] = []
        self._written: set[bytes] = set()
        self._started = time.time()
        self._committed = False

    def __enter__(self) -> Session:
        self._store.blobs.refresh()
        self._claim(b"")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(CheckpointError):
            self._store.blobs.delete(self._claims)
            if not self._committed and self._written:
                discard(self._store, self._written, since=self._started)

    def missing(self, digests: Iterable[bytes]) -> set[bytes]:
        """Claim chunks, then return those that are not in the store and that the caller must
        ``put``.

        A chunk that another thread of this session is about to write is not missing.
        """
        wanted = set(digests)
        if not wanted:
            return set()
        self._claim(b"".join(wanted))
        self._avoid(wanted)
        absent = wanted - self._store.blobs.has(wanted)
        with self._lock:
            absent -= self._written
            self._written |= absent
        return absent

    def put(self, chunks: Mapping[bytes, bytes | memoryview]) -> None:
        """Compress and write chunks that were ``missing``: content by digest."""
        if not chunks:
            return
        blobs = {chunk_key(digest): compress(data) for digest, data in chunks.items()}
        self._store.blobs.put(blobs)
        with self._lock:
            self.chunks_new += len(chunks)
            self.bytes_new += sum(len(data) for data in chunks.values())
            self.bytes_stored += sum(len(data) for data in blobs.values())

    def commit(self, manifest: Manifest) -> str:
        """Write the manifest and return its key. Everything it names must have been put before."""
        key, data = seal(manifest)
        self._store.blobs.commit(f"m/{key}", data)
        if not self._store.blobs.get([self._claims[0]])[0]:
            self._store.blobs.delete([f"m/{key}"])
            raise StoreUnreachableError(
                "Storing took so long that the collection of unused chunks gave it up; try again."
            )
        with self._lock:
            self.bytes_stored += len(data)
            self._committed = True
        return key

    def _claim(self, digests: bytes) -> None:
        with self._lock:
            key = f"i/{self.id}/{len(self._claims)}"
            self._claims.append(key)
        self._store.blobs.put({key: digests or b"-"})

    def _avoid(self, wanted: set[bytes]) -> None:
        """Wait until no collection is deleting any of these chunks."""
        patience = time.monotonic() + WAIT_S
        while True:
            doomed, marker = condemned(self._store, now=time.time())
            self._store.notice(marker)
            if not wanted & doomed:
                return
            if time.monotonic() > patience:
                raise StoreUnreachableError(
                    "A collection of unused chunks has not come to an end; try again."
                )
            self._pause(0.05)
