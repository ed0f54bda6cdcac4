"""Images that lean on others: only what differs is made, CRIU finds the rest in its parent.

A page map may say of a run of pages that they lie in the images that the link ``parent`` leads to,
at the same addresses. So a node that holds any earlier image of a replica needs to fetch and write
only the chunks that are not in it, for however large an image. The manifest stays complete: what
leans, and on what, is settled by the node that restores.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from agents.checkpoints.manifest import Entry, Extent, Manifest
from agents.checkpoints.pagemaps import (
    PAGE,
    PARENT,
    PRESENT,
    ImageFormatError,
    PageMap,
    Run,
    read_map,
    write_map,
)

IMAGES = "images"
PARENT_LINK = "parent"
NEAR = 0.7
"""Share of an image's bytes that makes an older one good enough to lean on."""

Ranges = tuple[tuple[int, int], ...]
"""Addresses and numbers of pages."""
Known = dict[int, tuple[bytes, Ranges]]
"""Chunks of memory by the address at which each begins."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """A whole image that this node holds: its folder and its manifest."""

    images: Path
    manifest: Manifest

    @cached_property
    def known(self) -> dict[bytes, Known]:
        """What it has, by the name of each page map that can be leant on. Takes a moment, once."""
        return dict(_known(self))


@dataclass(slots=True)
class Lean:
    """What is left of one page file: its length, its chunks at their new places, its map's runs."""

    size: int = 0
    extents: list[Extent] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    spared: int = 0
    """Bytes that the base has."""


def lean_on(base: Base, manifest: Manifest, images: Path) -> dict[bytes, Lean]:
    """Say for each page file of a manifest what must be in it beside a base.

    ``images`` holds the small files already: the page maps are read from there. A page file that
    is not understood, or of which the base has nothing, is left out: it must be made whole.
    """
    ours = {entry.path: entry for entry in manifest.tree(IMAGES)}
    found: dict[bytes, Lean] = {}
    for name in ours:
        # Shared memory is left whole: it is small, and read in another way.
        known = base.known.get(name) if is_map(name) else None
        if not known:
            continue
        try:
            map = read_map(images / os.fsdecode(name))
        except (ImageFormatError, OSError):
            continue
        pages = ours.get(map.name.encode())
        if pages is None or not _fits(map, pages):
            continue
        lean = _compare(map, pages, known)
        if lean.spared:
            found[pages.path] = lean
            write_map(images / os.fsdecode(name), map, lean.runs)
    return found


def _known(base: Base) -> Iterator[tuple[bytes, Known]]:
    """Yield each page map of an image that can be leant on, with what it has at each address."""
    entries = {entry.path: entry for entry in base.manifest.tree(IMAGES)}
    for name in entries:
        if not is_map(name):
            continue
        try:
            map = read_map(base.images / os.fsdecode(name))
        except (ImageFormatError, OSError):
            continue
        pages = entries.get(map.name.encode())
        if pages is not None and _fits(map, pages):
            yield name, {ranges[0][0]: (digest, ranges) for digest, ranges in _chunks(map, pages)}


def is_map(name: bytes) -> bool:
    """Tell whether a file is the page map of a process's own memory."""
    number = name.removeprefix(b"pagemap-").removesuffix(b".img")
    return number.isdigit()


def is_pages(name: bytes) -> bool:
    """Tell whether a file holds pages."""
    return name.startswith(b"pages-")


def _fits(map: PageMap, pages: Entry) -> bool:
    plain = all(run.flags & PRESENT and not run.flags & PARENT for run in map.runs)
    whole = all(extent.length % PAGE == 0 == extent.offset % PAGE for extent in pages.extents)
    return plain and whole and map.size() == pages.size


def _compare(map: PageMap, pages: Entry, known: Known) -> Lean:
    lean = Lean()
    runs: list[Run] = []
    address, count, flags = 0, 0, PRESENT
    for chunk in _chunks(map, pages):
        digest, ranges = chunk
        length = sum(count for _, count in ranges) * PAGE
        spared = known.get(ranges[0][0]) == chunk
        if spared:
            lean.spared += length
        else:
            if digest:
                lean.extents.append(Extent(lean.size, length, digest))
            lean.size += length
        kind = PARENT if spared else PRESENT
        for start, more in ranges:
            # Those that go on where the last one ends become one.
            if kind == flags and start == address + count * PAGE:
                count += more
                continue
            if count:
                runs.append(Run(address, count, flags))
            address, count, flags = start, more, kind
    lean.runs = [*runs, Run(address, count, flags)] if count else runs
    return lean


def _chunks(map: PageMap, pages: Entry) -> Iterator[tuple[bytes, Ranges]]:
    """Yield each chunk of a page file with the addresses of its pages; zeros have no digest.

    There are thousands of chunks, and most lie within one run.
    """
    runs = iter(map.runs)
    address = left = 0
    for digest, length in _pieces(pages):
        wanted = length // PAGE
        found: list[tuple[int, int]] = []
        while wanted > left:
            if left:
                found.append((address, left))
                wanted -= left
            run = next(runs)
            address, left = run.address, run.pages
        found.append((address, wanted))
        address += wanted * PAGE
        left -= wanted
        yield digest, tuple(found)


def _pieces(pages: Entry) -> Iterator[tuple[bytes, int]]:
    """Yield the digest and the length of each chunk of a file, and of the zeros between them."""
    at = 0
    for extent in pages.extents:
        if extent.offset > at:
            yield b"", extent.offset - at
        yield extent.digest, extent.length
        at = extent.offset + extent.length
    if pages.size > at:
        yield b"", pages.size - at
