"""Log files of the parts: appended to by the part itself, cut by us when they grow."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

LIMIT = 8 * 1024 * 1024
"""Bytes; a longer file is copied to ``.1`` and emptied."""


def open_log(folder: Path, name: str) -> int:
    """Answer a descriptor that appends, which is what lets the file be emptied under its writer."""
    folder.mkdir(parents=True, exist_ok=True)
    return os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def rotate(folder: Path, limit: int = LIMIT) -> None:
    """Cut every log that outgrew the limit; the last ``limit`` bytes and more stay in ``.1``."""
    for log in folder.glob("*.log"):
        if log.stat().st_size > limit:
            shutil.copyfile(log, log.with_suffix(".log.1"))
            os.truncate(log, 0)


def tail(folder: Path, name: str, lines: int = 12) -> str:
    """Answer the last lines of a part's log, to show why it does not start."""
    try:
        content = (folder / f"{name}.log").read_bytes()[-16384:]
    except OSError:
        return ""
    return "\n".join(content.decode(errors="replace").splitlines()[-lines:])
