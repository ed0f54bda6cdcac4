"""Blobs at any fsspec URL: S3 and its like, or another node's file server.

Requests go out many at a time. What is there is learned from listings by the first two digits of
the name, once a store, and kept: most chunks of a later checkpoint cost no request at all.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import fsspec

from agents.addresses import without_login
from agents.checkpoints.blobs import Blob, chunk_key
from agents.checkpoints.errors import StoreUnreachableError, told
from agents.checkpoints.lanes import spread


class Remote:
    """Blobs behind an fsspec file system. ``options`` go to it: endpoint, credentials."""

    window = 256 * 1024  # four times the local one: requests cost more than bytes here

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        self.url = without_login(url)
        self.lanes = max(4, 2 * (os.cpu_count() or 1))
        self._known: set[str] = set()
        self._listed: set[str] = set()
        self._generation = 0
        self._lock = threading.Lock()
        with self._told():
            settings = {"use_listings_cache": False, **(options or {})}
            self._system, root = fsspec.url_to_fs(url, **settings)
            self._root = root.rstrip("/")

    def get(self, keys: Sequence[str]) -> list[bytes | None]:
        paths = [self._path(key) for key in keys]
        with self._told():
            found: dict[str, Any] = self._system.cat(paths, on_error="return") if paths else {}
            if isinstance(found, bytes):
                found = {paths[0]: found}
        return [self._content(found[path]) for path in paths]

    def has(self, digests: Collection[bytes]) -> set[bytes]:
        keys = {chunk_key(digest): digest for digest in digests}
        unknown = {key.rpartition("/")[0] for key in keys if key not in self._known}
        missing = unknown - self._listed
        if missing:
            spread(sorted(missing), self._learn, min(16, len(missing)))
        return {digest for key, digest in keys.items() if key in self._known}

    def put(self, blobs: Mapping[str, bytes]) -> None:
        if not blobs:
            return
        with self._told():
            self._system.pipe({self._path(key): data for key, data in blobs.items()})
        with self._lock:
            self._known.update(blobs)

    def commit(self, key: str, data: bytes) -> None:
        self.put({key: data})

    def delete(self, keys: Collection[str]) -> None:
        with self._lock:
            self._known.difference_update(keys)
        with self._told():
            for part in _parts(sorted(keys), 1000):
                paths = [self._path(key) for key in part]
                try:
                    self._system.rm(paths)
                except FileNotFoundError:
                    for path in paths:
                        if self._system.exists(path):
                            self._system.rm(path)

    def find(self, prefix: str) -> list[Blob]:
        with self._told():
            try:
                found = self._system.find(self._path(prefix.rstrip("/")), detail=True)
            except FileNotFoundError:
                return []
        cut = len(self._root) + 1
        return [
            Blob(info["name"][cut:], info["size"] or 0, _modified(info)) for info in found.values()
        ]

    def refresh(self) -> None:
        with self._lock:
            self._listed.clear()

    def forget(self) -> None:
        with self._lock:
            self._generation += 1
            self._listed.clear()
            self._known.clear()

    def tidy(self, before: float) -> None:
        """Nothing is ever half-written here."""

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _learn(self, folder: str) -> None:
        while True:
            generation = self._generation
            there = {blob.key for blob in self.find(f"{folder}/")}
            with self._lock:
                if (
                    generation == self._generation
                ):  # else the listing may show what was deleted since
                    self._known |= there
                    self._listed.add(folder)
                    return

    def _content(self, found: object) -> bytes | None:
        if isinstance(found, bytes):
            return found
        if isinstance(found, FileNotFoundError | KeyError):
            return None
        raise StoreUnreachableError(f"The chunk store {self.url} cannot be read: {found}.")

    @contextmanager
    def _told(self) -> Iterator[None]:
        with told(f"The chunk store {self.url}"):
            try:
                yield
            except (OSError, ImportError) as error:
                if isinstance(error, ImportError):
                    raise StoreUnreachableError(
                        f"The chunk store {self.url} needs a package: {error}."
                    ) from error
                raise
            except Exception as error:
                if type(error).__module__.partition(".")[0] in {
                    "botocore",
                    "aiobotocore",
                    "aiohttp",
                }:
                    raise StoreUnreachableError(
                        f"The chunk store {self.url} does not answer: {error}."
                    ) from error
                raise


def _modified(info: Mapping[str, Any]) -> float:
    for name in ("LastModified", "mtime", "updated", "created"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
    return 0.0


def _parts(keys: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for at in range(0, len(keys), size):
        yield keys[at : at + size]
