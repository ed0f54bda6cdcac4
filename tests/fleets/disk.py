"""A disk of a few hundred megabytes for a test fleet, which can be filled and emptied again."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self


class SmallDisk:
    """A file system in memory, mounted at ``path``. A context manager: leaving it unmounts it."""

    def __init__(self, path: Path, *, size: int = 512 * 1024**2) -> None:
        self.path = path
        self.size = size
        self._balloon = path / "balloon"

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True)
        told = f"size={self.size},mode=0755"
        subprocess.run(["mount", "-t", "tmpfs", "-o", told, "tmpfs", self.path], check=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        subprocess.run(["umount", "--lazy", self.path], check=True)

    def fill(self) -> None:
        """Take all the room that is left."""
        file = os.open(self._balloon, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while (disk := os.fstatvfs(file)).f_bavail:
                # Others may take some of it meanwhile.
                with contextlib.suppress(OSError):
                    room = disk.f_bavail * disk.f_frsize
                    os.posix_fallocate(file, os.fstat(file).st_size, room)
        finally:
            os.close(file)

    def empty(self) -> None:
        """Give the room back."""
        self._balloon.unlink(missing_ok=True)
