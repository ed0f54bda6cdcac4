"""What a container is shown of its node: programs, the interpreter, NVIDIA devices."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "nix", "srv")
"""Top-level folders shown read-only; homes, /var, /run and /tmp are the node's own business."""

NVIDIA = Path("/proc/driver/nvidia/gpus")
NVIDIA_SHARED = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of this node's file system that containers see at the same paths."""

    links: tuple[tuple[str, str], ...]
    """Top-level symbolic links, e.g. ``/bin`` -> ``usr/bin``."""
    folders: tuple[str, ...]
    """Folders bound read-only, outer before inner."""


def look(shares: Iterable[Path] = (), root: Path = Path("/")) -> Host:
    """Find what to show: programs, this interpreter with its virtual environment, and ``shares``.

    The interpreter may live where other users cannot go (below a home of mode 700, or below /tmp).
    It is bound by itself: the folders above it are then the container's own, which all may pass.
    """
    links, folders = [], []
    for name in PROGRAMS:
        path = root / name
        if path.is_symlink():
            links.append((f"/{name}", str(path.readlink())))
        elif path.is_dir():
            folders.append(f"/{name}")
    wanted = [sys.prefix, sys.base_prefix, *map(str, shares)]
    for folder in sorted({path for each in wanted for path in (each, os.path.realpath(each))}):
        if folder != "/" and not any(Path(folder).is_relative_to(shown) for shown in folders):
            folders.append(folder)
    return Host(tuple(links), tuple(folders))


def nvidia_devices(gpus: tuple[str, ...], gpus_folder: Path = NVIDIA) -> list[dict[str, Any]]:
    """OCI device entries for the GPUs with these UUIDs and for what all of them share."""
    if not gpus:
        return []
    names = []
    for information in sorted(gpus_folder.glob("*/information")):
        text = information.read_text()
        uuid = re.search(r"GPU UUID:\s*(\S+)", text)
        minor = re.search(r"Device Minor:\s*(\d+)", text)
        if uuid and minor and uuid[1] in gpus:
            names.append(f"nvidia{minor[1]}")
    nodes = (device_node(Path("/dev", name)) for name in (*names, *NVIDIA_SHARED))
    return [node for node in nodes if node is not None]


def device_node(path: Path) -> dict[str, Any] | None:
    """The OCI entry for a character device; ``None`` where it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    if not stat.S_ISCHR(status.st_mode):
        return None
    return {
        "path": str(path),
        "type": "c",
        "major": os.major(status.st_rdev),
        "minor": os.minor(status.st_rdev),
        "fileMode": 0o666,
        "uid": 0,
        "gid": 0,
    }
