"""Bringing a stored replica to this node: from what is kept here, and the rest from the store."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agents.checkpoints import Base, Manifest, fetch_image, fetch_tree

if TYPE_CHECKING:
    from agents.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """Images that a replica can be restored from."""

    images: Path
    key: str = ""
    manifest: Manifest | None = None
    """That of images which were fetched."""
    base: Base | None = None
    """The kept images that they are, or lean on."""


def bring(node: Node, owner: str, key: str, folder: Path, *, whole: bool = False) -> Brought:
    """Make a replica's workspace in its folder, and its images there if they are not kept here.

    ``whole`` uses nothing that is kept. Blocking. Raises ``CheckpointError``.
    """
    images, workspace = folder / "images", folder / "workspace"
    if whole:
        node.kept.distrust(owner)
    elif (known := node.kept.find(owner, key)) is not None:
        fetch_tree(node.store, key, workspace)
        return Brought(images=known.images, base=known)
    base = None if whole else node.kept.newest(owner)
    fetched = fetch_image(node.store, key, images, workspace, base=base)
    return Brought(images=images, key=key, manifest=fetched.manifest, base=base)


def move_in(brought: Brought, there: Path, folder: Path) -> Brought:
    """Put what was brought to another folder, as deep in the node's own, into a replica's."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("workspace", "images"):
        shutil.rmtree(folder / name, ignore_errors=True)
        if (there / name).exists():
            (there / name).rename(folder / name)
    shutil.rmtree(there, ignore_errors=True)
    images = folder / "images" if brought.images == there / "images" else brought.images
    return replace(brought, images=images)


def settle(node: Node, owner: str, brought: Brought, images: Path) -> None:
    """Keep images that were fetched whole; others have served."""
    if brought.manifest is not None:
        node.kept.keep(owner, brought.key, brought.manifest, images)
    else:
        shutil.rmtree(images, ignore_errors=True)
