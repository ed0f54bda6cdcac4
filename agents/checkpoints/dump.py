"""Put images and workspaces into the chunk store.

The workspace is read first: once ``captured`` is called, the replica may run on, for its memory
lies in the images. Work goes over as many threads as the store can use, in three steps: read and
name all pieces; claim them; read again those that the store lacks, compress and write them. Little
is lacking as a rule, and it goes into few packs: each is a file to be synced, which others must
open. Memory is bounded by a pack a thread.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import blake3

from agents.checkpoints.errors import ChangedError
from agents.checkpoints.intake import Intake
from agents.checkpoints.lanes import spread
from agents.checkpoints.leaning import IMAGES
from agents.checkpoints.manifest import Entry, Manifest
from agents.checkpoints.memory import cuts
from agents.checkpoints.session import Session
from agents.checkpoints.store import Store
from agents.checkpoints.tree import Piece, Tree, digest_of_zeros, extent_of, open_piece, scan

WORKSPACE = "workspace"

BATCH = 4 * 1024 * 1024
PACK = 4 * BATCH
"""Bytes of memory that are written together at most."""
ROUND = 1 << 13
"""Pieces that are claimed together: half a gigabyte of memory, two of files. A store that claims
nothing for an hour is taken for dead.
"""

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all, from several threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a store came to."""

    manifest_key: str
    manifest: Manifest
    bytes_raw: int
    """Bytes of all files, holes not counted."""
    bytes_new: int
    """Of these, bytes of chunks that were not in the store before."""
    bytes_stored: int
    """Compressed bytes written for them, manifest included."""
    seconds: float


def store_image(
    store: Store,
    images: Path,
    workspace: Path,
    *,
    intake: Intake | None = None,
    base: Manifest | None = None,
    progress: Progress | None = None,
    captured: Callable[[], None] | None = None,
) -> Stored:
    """Store a dumped replica: CRIU's images and its workspace. Nothing is left in the store on
    failure.

    Files that ``base``, an earlier manifest of the same workspace, has unchanged are not read
    again. ``intake`` took the pages of these images while they were dumped. ``captured`` is called
    once the workspace has been read, while the images are still being stored. Raises
    ``StoreFullError``, ``StoreUnreachableError`` or ``ChangedError``.
    """
    began = time.monotonic()
    known = {entry.path: entry for entry in _same_machine(base)}
    files = scan(workspace, base=known)
    memory = _memory(images, intake, store.blobs.window)
    count = _counter([files, memory], progress)
    with Session(store) as session:
        _store_pieces(session, store, files.pieces, count)
        if captured:
            captured()
        _store_pieces(session, store, memory.pieces, count)
        return _commit(session, {IMAGES: memory, WORKSPACE: files}, began)


def _memory(images: Path, intake: Intake | None, window: int) -> Tree:
    """List CRIU's images, and the pages that were taken on their way to them."""
    taken = {file[0].path: file for file in intake.files()} if intake else {}
    left = {os.fsencode(path.name) for path in images.glob("pages-*.img")} - set(taken)
    tree = scan(images, cuts=cuts(images, window) if left else {}, without=taken)
    for entry, pieces in taken.values():
        tree.entries.append(entry)
        tree.pieces += pieces
    return tree


def store_tree(
    store: Store,
    folder: Path,
    *,
    base: Manifest | None = None,
    progress: Progress | None = None,
) -> Stored:
    """Store a folder, such as the workspace of a job that has ended; else as ``store_image``."""
    began = time.monotonic()
    tree = scan(folder, base={entry.path: entry for entry in _same_machine(base)})
    with Session(store) as session:
        _store_pieces(session, store, tree.pieces, _counter([tree], progress))
        return _commit(session, {WORKSPACE: tree}, began)


def _store_pieces(
    session: Session, store: Store, pieces: list[Piece], count: Callable[[int], None]
) -> None:
    def name(batch: list[Piece]) -> None:
        _read(batch)
        count(sum(piece.length for piece in batch))

    def write(batch: list[Piece]) -> None:
        session.put(_read(batch))

    for first in range(0, len(pieces), ROUND):
        some = pieces[first : first + ROUND]
        named = sum(piece.length for piece in some if piece.digest)
        count(named)
        _spread(store, [piece for piece in some if not piece.digest], BATCH, name)
        wanted: dict[bytes, Piece] = {}
        for piece in some:
            if piece.digest:
                wanted.setdefault(piece.digest, piece)
        missing = session.missing(wanted)
        lacking = [piece for digest, piece in wanted.items() if digest in missing]
        share = sum(piece.length for piece in lacking) // store.blobs.lanes + 1
        _spread(store, lacking, min(PACK, max(BATCH, share)), write)
    for piece in pieces:
        if piece.digest:
            piece.entry.extents.append(extent_of(piece))


def _spread(
    store: Store, pieces: list[Piece], size: int, act: Callable[[list[Piece]], None]
) -> None:
    batches = list(_batches(pieces, size))
    spread(batches, act, min(store.blobs.lanes, len(batches)))


def _read(pieces: Iterable[Piece]) -> dict[bytes, memoryview]:
    """Read pieces and name them; those of zeros only are left without a name. Returns content by
    digest.
    """
    contents: dict[bytes, memoryview] = {}
    for group in _neighbours(pieces):
        path, start = group[0].path, group[0].place
        file = open_piece(path)
        try:
            whole = memoryview(os.pread(file, sum(piece.length for piece in group), start))
        finally:
            os.close(file)
        for piece in group:
            data = whole[piece.place - start :][: piece.length]
            if len(data) != piece.length:
                raise ChangedError(f"{os.fsdecode(path)!r} became shorter while it was stored.")
            digest = blake3.blake3(data).digest()
            if not piece.digest and digest == digest_of_zeros(piece.length):
                continue
            if piece.digest not in (b"", digest):
                raise ChangedError(f"{os.fsdecode(path)!r} changed, but its times did not.")
            piece.digest = digest
            contents[digest] = data
    return contents


def _neighbours(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Group pieces that follow each other in a file: one read fetches them all."""
    group: list[Piece] = []
    path, end = b"", 0
    for piece in pieces:
        if group and (piece.path != path or piece.place != end):
            yield group
            group = []
        group.append(piece)
        path, end = piece.path, piece.place + piece.length
    if group:
        yield group


def _batches(pieces: list[Piece], most: int) -> Iterator[list[Piece]]:
    batch: list[Piece] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += piece.length
        if size >= most or len(batch) >= 1024:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _counter(trees: list[Tree], progress: Progress | None) -> Callable[[int], None]:
    total = sum(piece.length for tree in trees for piece in tree.pieces)
    done: list[int] = []

    def count(size: int) -> None:
        done.append(size)
        if progress:
            progress(sum(done), total)

    return count


def _commit(session: Session, trees: Mapping[str, Tree], began: float) -> Stored:
    raw = sum(piece.length for tree in trees.values() for piece in tree.pieces)
    manifest = Manifest(
        nonce=secrets.token_hex(8),
        machine=_machine(),
        created_at=time.time(),
        bytes_raw=raw,
        trees={name: tree.entries for name, tree in trees.items()},
    )
    key = session.commit(manifest)
    return Stored(
        manifest_key=key,
        manifest=manifest,
        bytes_raw=raw,
        bytes_new=session.bytes_new,
        bytes_stored=session.bytes_stored,
        seconds=time.monotonic() - began,
    )


def _same_machine(base: Manifest | None) -> list[Entry]:
    """Entries of a base whose inodes and times mean something here: made since this machine
    started.
    """
    return base.tree(WORKSPACE) if base and base.machine == _machine() else []


def _machine() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
