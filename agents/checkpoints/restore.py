"""Get images and workspaces back out of the chunk store.

Everything is made in a hidden folder beside its place and every chunk is checked on the way; only a
whole tree is renamed into place. A damaged image therefore leaves what was there untouched.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from agents.checkpoints.dump import BATCH, IMAGES, WORKSPACE, Progress
from agents.checkpoints.errors import DamagedError, StoreFullError, told
from agents.checkpoints.lanes import spread
from agents.checkpoints.manifest import Entry, Extent, Manifest
from agents.checkpoints.store import Store

_Part = tuple[bytes, Extent]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a fetch came to."""

    manifest: Manifest
    bytes_raw: int
    seconds: float


def fetch_image(
    store: Store, key: str, images: Path, workspace: Path, *, progress: Progress | None = None
) -> Fetched:
    """Make the images and the workspace of a stored replica; what lay in these two places is
    replaced.

    Raises ``DamagedError`` (also for the manifest of a bare tree), ``StoreFullError`` or
    ``StoreUnreachableError``; then both places are as they were.
    """
    began = time.monotonic()
    manifest = store.load(key)
    if IMAGES not in manifest.trees:
        raise DamagedError(f"The manifest {key[:12]} has no memory in it: nothing to restore.")
    _make(store, manifest, {IMAGES: images, WORKSPACE: workspace}, progress)
    seconds = time.monotonic() - began
    return Fetched(manifest=manifest, bytes_raw=manifest.bytes_raw, seconds=seconds)


def fetch_tree(
    store: Store, key: str, folder: Path, *, progress: Progress | None = None
) -> Fetched:
    """Make the workspace of a stored replica or tree; else as ``fetch_image``."""
    began = time.monotonic()
    manifest = store.load(key)
    _make(store, manifest, {WORKSPACE: folder}, progress)
    seconds = time.monotonic() - began
    return Fetched(manifest=manifest, bytes_raw=manifest.bytes_raw, seconds=seconds)


def _make(
    store: Store, manifest: Manifest, places: dict[str, Path], progress: Progress | None
) -> None:
    with ExitStack() as cleanup, told("The place to restore to"):
        halves: dict[Path, Path] = {}
        for name, place in places.items():
            half = place.with_name(f".{place.name}.{secrets.token_hex(4)}.half")
            place.parent.mkdir(parents=True, exist_ok=True)
            cleanup.callback(shutil.rmtree, half, ignore_errors=True)
            half.mkdir(mode=0o700)
            _outline(half, manifest.tree(name))
            halves[place] = half
        _fill(store, manifest, {name: halves[place] for name, place in places.items()}, progress)
        for name, place in places.items():
            _finish(halves[place], manifest.tree(name))
        for place, half in halves.items():
            _replace(place, half)


def _outline(root: Path, entries: list[Entry]) -> None:
    """Make every name of a tree; files get their length and no content yet."""
    top = os.fsencode(root)
    for entry in entries:
        path = top + b"/" + entry.path
        if entry.kind == "folder":
            if entry.path:
                os.mkdir(path, 0o700)  # noqa: PTH102 - names are bytes here and below
        elif entry.kind == "link":
            os.symlink(entry.target, path)  # noqa: PTH211
        elif entry.kind == "pipe":
            os.mkfifo(path, 0o600)
        elif entry.kind == "same":
            os.link(top + b"/" + entry.target, path)
        else:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            try:
                os.ftruncate(file, entry.size)
            finally:
                os.close(file)


def _fill(
    store: Store, manifest: Manifest, roots: dict[str, Path], progress: Progress | None
) -> None:
    total = sum(e.length for name in roots for entry in manifest.tree(name) for e in entry.extents)
    done: list[int] = []

    def act(batch: list[_Part]) -> None:
        contents = store.read([extent for _, extent in batch])
        _write(batch, contents)
        done.append(sum(extent.length for _, extent in batch))
        if progress:
            progress(sum(done), total)

    lanes = min(store.blobs.lanes, total // BATCH + 1)
    spread(_batches(manifest, roots), act, lanes)


def _batches(manifest: Manifest, roots: dict[str, Path]) -> Iterator[list[_Part]]:
    batch: list[_Part] = []
    size = 0
    for name, root in roots.items():
        for entry in manifest.tree(name):
            path = os.fsencode(root) + b"/" + entry.path
            for extent in entry.extents:
                batch.append((path, extent))
                size += extent.length
                if size >= BATCH or len(batch) >= 1024:
                    yield batch
                    batch, size = [], 0
    if batch:
        yield batch


def _write(batch: list[_Part], contents: list[bytes]) -> None:
    open_path, file = b"", -1
    try:
        for (path, extent), data in zip(batch, contents, strict=True):
            if path != open_path:
                if file >= 0:
                    os.close(file)
                    file = -1
                file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
                open_path = path
            if os.pwrite(file, data, extent.offset) != len(data):
                raise StoreFullError("No room is left where the checkpoint is to be restored.")
    finally:
        if file >= 0:
            os.close(file)


def _finish(root: Path, entries: list[Entry]) -> None:
    """Give every name its owner, mode and time; folders last, from the leaves up."""
    top = os.fsencode(root)
    is_root = os.geteuid() == 0
    for entry in sorted(entries, key=lambda entry: entry.kind == "folder", reverse=False):
        if entry.kind not in ("folder", "same"):
            _dress(top + b"/" + entry.path, entry, is_root=is_root)
    for entry in reversed(entries):
        if entry.kind == "folder":
            _dress(top + b"/" + entry.path, entry, is_root=is_root)


def _dress(path: bytes, entry: Entry, *, is_root: bool) -> None:
    if is_root:
        os.chown(path, entry.uid, entry.gid, follow_symlinks=False)
    if entry.kind != "link":
        # Without its owner a file must not keep a mode that lends the owner's rights.
        os.chmod(path, entry.mode if is_root else entry.mode & 0o777)  # noqa: PTH101
    os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)


def _replace(place: Path, half: Path) -> None:
    """Put a finished folder in its place; what was there goes."""
    if place.is_symlink() or place.is_file():
        place.unlink()
    old = place.with_name(f".{place.name}.{secrets.token_hex(4)}.old")
    if place.exists():
        place.rename(old)
    half.rename(place)
    shutil.rmtree(old, ignore_errors=True)
