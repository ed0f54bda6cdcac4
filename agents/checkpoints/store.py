"""The chunk store: equal bytes are stored once, and what is read is checked against its name.

c/ab/abcd…   a chunk, zstd-compressed, named by the BLAKE3 hash of its content; in a local
             folder many of them lie in one file p/…                  (packs.py)
m/<key>      a manifest, named by the hash of its stored bytes        (manifest.py)
i/<id>/…     claims of a store in progress                            (session.py)
g/…          what a collection is about to delete                     (collection.py)
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import blake3
import zstandard

from agents.addresses import without_login
from agents.checkpoints.blobs import Blobs, chunk_key
from agents.checkpoints.cache import Cached
from agents.checkpoints.errors import CheckpointError, DamagedError
from agents.checkpoints.manifest import Extent, Manifest, is_key, unseal
from agents.checkpoints.packs import Packs
from agents.checkpoints.remote import Remote

LEVEL = 1
CACHE_BYTES = 20 * 1024**3

_own = threading.local()


class Store:
    """A place for chunks and manifests. Safe to use from many threads and by many processes at
    once.
    """

    def __init__(self, url: str, blobs: Blobs) -> None:
        self.url = url
        self.blobs = blobs
        self._marker = ""
        self._lock = threading.Lock()

    def load(self, key: str) -> Manifest:
        """Read and check a manifest. Raises ``DamagedError`` if it is not there whole and
        unaltered.
        """
        data = self.blobs.get([f"m/{key}"])[0] if is_key(key) else None
        if data is None:
            raise DamagedError(f"The checkpoint {key[:12]!r} is not in the store {self.url}.")
        return unseal(key, data)

    def read(self, extents: Sequence[Extent]) -> list[bytes]:
        """Read chunks, in order. Raises ``DamagedError`` if one is missing or altered."""
        unique = {extent.digest: extent for extent in extents}
        keys = [chunk_key(digest) for digest in unique]
        stored = dict(zip(unique, self.blobs.get(keys), strict=True))
        opened = {digest: self._open(unique[digest], data) for digest, data in stored.items()}
        bad = [digest for digest, content in opened.items() if content is None]
        if bad:
            # Out of the way, so that the next store of the same bytes writes them anew.
            with contextlib.suppress(CheckpointError):
                self.blobs.delete([chunk_key(digest) for digest in bad if stored[digest]])
                self.announce()
            state = "missing from" if stored[bad[0]] is None else "altered or cut short in"
            raise DamagedError(
                f"The chunk {bad[0].hex()[:12]} is {state} the chunk store {self.url}; "
                "go back to an earlier checkpoint."
            )
        return [opened[extent.digest] or b"" for extent in extents]

    def announce(self) -> None:
        """Tell all that remember what is in the store that something was deleted from it."""
        old = [blob.key for blob in self.blobs.find("g/") if blob.key.startswith("g/done-")]
        self.blobs.put({f"g/done-{secrets.token_hex(8)}": b"-"})
        self.blobs.delete(old)

    def notice(self, marker: str) -> None:
        """Trust nothing that was seen before the collection with this marker ended."""
        with self._lock:
            if marker != self._marker:
                self.blobs.forget()
                self._marker = marker

    def _open(self, extent: Extent, data: bytes | None) -> bytes | None:
        """Return a chunk's content; a damaged copy of the node's own is fetched anew first."""
        content = expand(extent, data)
        if content is None and data is not None and isinstance(self.blobs, Cached):
            key = chunk_key(extent.digest)
            self.blobs.drop(key)
            content = expand(extent, self.blobs.get([key])[0])
        return content


def open_store(
    url: str | Path,
    *,
    cache: Path | None = None,
    cache_bytes: int = CACHE_BYTES,
    options: Mapping[str, Any] | None = None,
    durable: bool = False,
) -> Store:
    """Open (and make, if need be) a store in a local folder or at an fsspec URL such as ``s3://…``.

    ``cache`` is a folder for a node's own copies of a distant store's chunks, at most
    ``cache_bytes``; ``options`` go to the fsspec file system. With ``durable`` a store in a folder
    waits until all is on disk before a checkpoint counts as stored; else the kernel writes it back
    within the half minute, and a machine that loses power before that may find its newest
    checkpoint damaged. Raises ``StoreUnreachableError``.
    """
    text = str(url)
    if "://" not in text or text.startswith("file://"):
        return _local(Path(text.removeprefix("file://")).absolute(), durable)
    blobs: Blobs = Remote(text, options)
    return Store(without_login(text), Cached(blobs, cache, cache_bytes) if cache else blobs)


@lru_cache(maxsize=16)
def _local(path: Path, durable: bool) -> Store:  # noqa: FBT001 - a key of the cache
    """A process opens a folder once: the tables of its packs are then in memory."""
    return Store(str(path), Packs(path, durable=durable))


def compress(data: bytes | memoryview) -> bytes:
    """Compress a chunk; each thread has a compressor of its own."""
    try:
        compressor: zstandard.ZstdCompressor = _own.compressor
    except AttributeError:
        compressor = _own.compressor = zstandard.ZstdCompressor(level=LEVEL)
    return compressor.compress(data)


def expand(extent: Extent, data: bytes | None) -> bytes | None:
    """Return a stored chunk's content, or ``None`` if it is not what the extent names."""
    if data is None:
        return None
    try:
        decompressor: zstandard.ZstdDecompressor = _own.decompressor
    except AttributeError:
        decompressor = _own.decompressor = zstandard.ZstdDecompressor()
    try:
        if zstandard.frame_content_size(data) != extent.length:
            return None
        content = decompressor.decompress(data)
    except zstandard.ZstdError:
        return None
    return content if blake3.blake3(content).digest() == extent.digest else None
