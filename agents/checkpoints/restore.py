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

from agents.checkpoints.dump import BATCH, WORKSPACE, Progress
from agents.checkpoints.errors import DamagedError, StoreFullError, told
from agents.checkpoints.lanes import spread
from agents.checkpoints.leaning import IMAGES, PARENT_LINK, Base, is_pages, lean_on
from agents.checkpoints.manifest import Entry, Extent, Manifest
from agents.checkpoints.store import Store

_Part = tuple[bytes, Extent]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a fetch came to."""

    manifest: Manifest
    bytes_raw: int
    bytes_fetched: int
    """Bytes of chunks that were read from the store; the others lie in the base."""
    seconds: float


def fetch_image(
    store: Store,
    key: str,
    images: Path,
    workspace: Path | None,
    *,
    base: Base | None = None,
    progress: Progress | None = None,
) -> Fetched:
    """Make the images and the workspace of a stored replica; what lay in these two places is
    replaced. Without ``workspace`` the images alone.

    With ``base``, an image of the same replica that this node holds, only what it lacks is fetched;
    the images then lean on it, and it must stay for as long as they are used. Raises
    ``DamagedError`` (also for the manifest of a bare tree), ``StoreFullError`` or
    ``StoreUnreachableError``; then both places are as they were.
    """
    began = time.monotonic()
    manifest = store.load(key)
    if IMAGES not in manifest.trees:
        raise DamagedError(f"The manifest {key[:12]} has no memory in it: nothing to restore.")
    places = {IMAGES: images, **({WORKSPACE: workspace} if workspace else {})}
    fetched = _make(store, manifest, places, base, progress)
    return Fetched(
        manifest=manifest,
        bytes_raw=manifest.bytes_raw,
        bytes_fetched=fetched,
        seconds=time.monotonic() - began,
    )


def fetch_tree(
    store: Store, key: str, folder: Path, *, progress: Progress | None = None
) -> Fetched:
    """Make the workspace of a stored replica or tree; else as ``fetch_image``."""
    began = time.monotonic()
    manifest = store.load(key)
    fetched = _make(store, manifest, {WORKSPACE: folder}, None, progress)
    return Fetched(
        manifest=manifest,
        bytes_raw=manifest.bytes_raw,
        bytes_fetched=fetched,
        seconds=time.monotonic() - began,
    )


def _make(
    store: Store,
    manifest: Manifest,
    places: dict[str, Path],
    base: Base | None,
    progress: Progress | None,
) -> int:
    with ExitStack() as cleanup, told("The place to restore to"):
        halves: dict[Path, Path] = {}
        for name, place in places.items():
            half = place.with_name(f".{place.name}.{secrets.token_hex(4)}.half")
            place.parent.mkdir(parents=True, exist_ok=True)
            cleanup.callback(shutil.rmtree, half, ignore_errors=True)
            half.mkdir(mode=0o700)
            _outline(half, manifest.tree(name))
            halves[place] = half
        roots = {name: halves[place] for name, place in places.items()}
        parts = list(_parts(manifest, roots))
        if base is None:
            _fill(store, parts, progress)
        else:
            parts = _fill_leaning(store, manifest, roots, parts, base, progress)
        for name, place in places.items():
            _finish(halves[place], manifest.tree(name))
        for place, half in halves.items():
            _replace(place, half)
        return sum(extent.length for _, extent in parts)


def _fill_leaning(
    store: Store,
    manifest: Manifest,
    roots: dict[str, Path],
    parts: list[_Part],
    base: Base,
    progress: Progress | None,
) -> list[_Part]:
    """Fill all but the pages, and then of the pages what the base lacks. Return what was fetched.

    The link is relative: CRIU follows it when the container's root is already its own.
    """
    top = os.fsencode(roots[IMAGES])
    pages = {top + b"/" + entry.path for entry in manifest.tree(IMAGES) if is_pages(entry.path)}
    small = [part for part in parts if part[0] not in pages]
    _fill(store, small, progress)
    left = {path: [part for part in parts if part[0] == path] for path in sorted(pages)}
    leans = lean_on(base, manifest, roots[IMAGES])
    for name, lean in leans.items():
        path = top + b"/" + name
        os.truncate(path, 0)
        os.truncate(path, lean.size)
        left[path] = [(path, extent) for extent in lean.extents]
    if leans:
        (roots[IMAGES] / PARENT_LINK).symlink_to(os.path.relpath(base.images, roots[IMAGES]))
    large = [part for of_file in left.values() for part in of_file]
    _fill(store, large, progress)
    return small + large


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


def _fill(store: Store, parts: list[_Part], progress: Progress | None) -> None:
    total = sum(extent.length for _, extent in parts)
    done: list[int] = []

    def act(batch: list[_Part]) -> None:
        contents = store.read([extent for _, extent in batch])
        _write(batch, contents)
        done.append(sum(extent.length for _, extent in batch))
        if progress:
            progress(sum(done), total)

    lanes = min(store.blobs.lanes, total // BATCH + 1)
    spread(_batches(parts), act, lanes)


def _parts(manifest: Manifest, roots: dict[str, Path]) -> Iterator[_Part]:
    for name, root in roots.items():
        for entry in manifest.tree(name):
            path = os.fsencode(root) + b"/" + entry.path
            for extent in entry.extents:
                yield path, extent


def _batches(parts: list[_Part]) -> Iterator[list[_Part]]:
    batch: list[_Part] = []
    size = 0
    for part in parts:
        batch.append(part)
        size += part[1].length
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
