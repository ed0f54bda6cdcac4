"""What a stored image is: trees of entries, each file a list of chunks; written last, named by its
hash.

A manifest is read in full and checked before anything is made from it: a path that leaves its tree,
a parent that is not a folder, a chunk beyond its file's end is damage like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import blake3
import msgspec
import zstandard

from agents.checkpoints.errors import DamagedError

VERSION = 1
MAX_CHUNK = 4 * 1024 * 1024
"""Bytes; no chunk is larger."""
_MAX_MANIFEST = 1 << 30
_DIGEST = 32
_KEY = re.compile(r"[0-9a-f]{64}")
_KINDS = {"folder", "file", "link", "same", "pipe"}


class Extent(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One chunk of a file: where it goes, how long it is, its BLAKE3 hash. Between extents lie
    zeros.
    """

    offset: int
    length: int
    digest: bytes


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One name in a tree."""

    path: bytes
    """Relative, in the file system's own bytes; empty for the root."""
    kind: str
    """``folder``, ``file``, ``link``, ``same`` (a hard link to an earlier file) or ``pipe``."""
    mode: int = 0
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    size: int = 0
    target: bytes = b""
    """Where a link points, or the path of the earlier file that this one is the same as."""
    inode: int = 0
    ctime_ns: int = 0
    """With ``inode``, ``size`` and ``mtime_ns``: equal means unchanged, on the machine that stored
    it.
    """
    extents: list[Extent] = []


class Manifest(msgspec.Struct, kw_only=True):
    """One stored image. ``nonce`` makes every manifest's key new, so that none is ever written
    twice.
    """

    version: int = VERSION
    nonce: str
    machine: str
    created_at: float
    bytes_raw: int
    """Bytes of all files, holes not counted."""
    trees: dict[str, list[Entry]]

    def extents(self) -> Iterator[Extent]:
        """Yield every chunk of every file."""
        for entries in self.trees.values():
            for entry in entries:
                yield from entry.extents

    def tree(self, name: str) -> list[Entry]:
        """Return the entries of one tree, parents first; none if it has no such tree."""
        return self.trees.get(name, [])


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Manifest)


def seal(manifest: Manifest) -> tuple[str, bytes]:
    """Return a manifest's key, 64 hexadecimal digits, and the bytes to store."""
    data = zstandard.ZstdCompressor(level=3).compress(_encode(manifest))
    return blake3.blake3(data).hexdigest(), data


def unseal(key: str, data: bytes) -> Manifest:
    """Read a stored manifest. Raises ``DamagedError`` unless it is whole, is what its key says, and
    is safe.
    """
    if blake3.blake3(data).hexdigest() != key:
        raise DamagedError(
            f"The checkpoint {key[:12]} was altered or cut short in the chunk store."
        )
    try:
        if zstandard.frame_content_size(data) > _MAX_MANIFEST:
            raise DamagedError(f"The checkpoint {key[:12]} has an impossible manifest.")
        manifest = _decoder.decode(zstandard.ZstdDecompressor().decompress(data))
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        raise DamagedError(f"The checkpoint {key[:12]} cannot be read: {error}.") from error
    if manifest.version != VERSION:
        raise DamagedError(
            f"The checkpoint {key[:12]} is of version {manifest.version}; this release reads "
            f"version {VERSION}."
        )
    for entries in manifest.trees.values():
        reason = _fault(entries)
        if reason:
            raise DamagedError(f"The checkpoint {key[:12]} is refused: {reason}.")
    return manifest


def is_key(text: str) -> bool:
    """Tell whether a text has the form of a manifest's key."""
    return bool(_KEY.fullmatch(text))


def _fault(entries: list[Entry]) -> str:
    """Say what is wrong with a tree; empty if nothing is."""
    kinds: dict[bytes, str] = {}
    for entry in entries:
        name = repr(entry.path)
        if entry.kind not in _KINDS or entry.path in kinds:
            return f"{name} is of an unknown kind or there twice"
        if entry.path:
            parts = entry.path.split(b"/")
            if b"\0" in entry.path or any(part in (b"", b".", b"..") for part in parts):
                return f"{name} leaves its folder"
            parent = entry.path.rpartition(b"/")[0]
            if parent and kinds.get(parent) != "folder":
                return f"{name} does not lie in a folder"
        elif entry.kind != "folder":
            return "its root is not a folder"
        if entry.kind == "same" and kinds.get(entry.target) != "file":
            return f"{name} is the same as a file that is not there"
        if not _covers(entry):
            return f"the chunks of {name} do not fit it"
        kinds[entry.path] = entry.kind
    return ""


def _covers(entry: Entry) -> bool:
    at = 0
    for extent in entry.extents:
        if (
            extent.offset < at
            or not 0 < extent.length <= MAX_CHUNK
            or len(extent.digest) != _DIGEST
        ):
            return False
        at = extent.offset + extent.length
    return at <= entry.size and (not entry.extents or entry.kind == "file")
