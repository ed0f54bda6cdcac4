"""Bringing a stored replica to this node: from what is kept here, and the rest from the store."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from agents.checkpoints import Manifest, fetch_image, fetch_tree
from agents.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """Images that a replica can be restored from."""

    images: Path
    kept: bool = False
    """Whether they are, or lean on, images that were kept here."""
    key: str = ""
    manifest: Manifest | None = None


def bring(node: Node, owner: str, key: str, folder: Path, *, whole: bool = False) -> Brought:
    """Make a replica's workspace in its folder, and its images there if they are not kept here.

    ``whole`` uses nothing that is kept. Blocking. Raises ``CheckpointError``.
    """
    images, workspace = folder / "images", folder / "workspace"
    if whole:
        node.kept.distrust(owner)
    elif (known := node.kept.find(owner, key)) is not None:
        fetch_tree(node.store, key, workspace)
        return Brought(images=known.images, kept=True)
    base = None if whole else node.kept.newest(owner)
    fetched = fetch_image(node.store, key, images, workspace, base=base)
    return Brought(images=images, kept=base is not None, key=key, manifest=fetched.manifest)


def settle(node: Node, owner: str, brought: Brought, images: Path) -> None:
    """Keep images that were fetched whole; others have served."""
    if brought.manifest is not None:
        node.kept.keep(owner, brought.key, brought.manifest, images)
    else:
        shutil.rmtree(images, ignore_errors=True)
