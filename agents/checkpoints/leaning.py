"""Images that lean on others: only what differs is made, CRIU finds the rest in its parent.

A page map may say of a run of pages that they lie in the images that the link ``parent`` leads to,
at the same addresses. So a node that holds any earlier image of a replica needs to fetch and write
only the chunks that are not in it, for however large an image. The manifest stays complete: what
leans, and on what, is settled by the node that restores.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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

Ranges = tuple[tuple[int, int], ...]
"""Addresses and numbers of pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A whole image that this node holds: its folder and its manifest."""

    images: Path
    manifest: Manifest


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
    theirs = {entry.path: entry for entry in base.manifest.tree(IMAGES)}
    found: dict[bytes, Lean] = {}
    for name in ours:
        # Shared memory is left whole: it is small, and read in another way.
        if not is_map(name) or name not in theirs:
            continue
        try:
            new = read_map(images / os.fsdecode(name))
            old = read_map(base.images / os.fsdecode(name))
        except (ImageFormatError, OSError):
            continue
        pages, before = ours.get(new.name.encode()), theirs.get(old.name.encode())
        if pages is None or before is None or not (_fits(new, pages) and _fits(old, before)):
            continue
        lean = _compare(new, pages, set(_chunks(old, before)))
        if lean.spared:
            found[pages.path] = lean
            write_map(images / os.fsdecode(name), new, lean.runs)
    return found


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


def _compare(map: PageMap, pages: Entry, known: set[tuple[bytes, Ranges]]) -> Lean:
    lean = Lean()
    for digest, ranges in _chunks(map, pages):
        length = sum(count for _, count in ranges) * PAGE
        spared = (digest, ranges) in known
        if spared:
            lean.spared += length
        else:
            if digest:
                lean.extents.append(Extent(lean.size, length, digest))
            lean.size += length
        _add(lean.runs, ranges, PARENT if spared else PRESENT)
    return lean


def _add(runs: list[Run], ranges: Ranges, flags: int) -> None:
    """Add ranges to runs; those that go on where the last one ends become one."""
    for address, count in ranges:
        last = runs[-1] if runs else None
        if last and last.flags == flags and last.address + last.pages * PAGE == address:
            runs[-1] = Run(last.address, last.pages + count, flags)
        else:
            runs.append(Run(address, count, flags))


def _chunks(map: PageMap, pages: Entry) -> Iterator[tuple[bytes, Ranges]]:
    """Yield each chunk of a page file with the addresses of its pages; zeros have no digest."""
    take = _Ranges(map.runs)
    at = 0
    for extent in pages.extents:
        if extent.offset > at:
            yield b"", take(extent.offset - at)
        yield extent.digest, take(extent.length)
        at = extent.offset + extent.length
    if pages.size > at:
        yield b"", take(pages.size - at)


class _Ranges:
    """Hands out the addresses of a page file's pages, from first to last."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = iter(runs)
        self._address = self._left = 0

    def __call__(self, length: int) -> Ranges:
        wanted = length // PAGE
        found: list[tuple[int, int]] = []
        while wanted:
            if not self._left:
                run = next(self._runs)
                self._address, self._left = run.address, run.pages
            count = min(wanted, self._left)
            found.append((self._address, count))
            self._address += count * PAGE
            self._left -= count
            wanted -= count
        return tuple(found)
