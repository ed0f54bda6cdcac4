"""The kernel's word that a file was written to (inotify), so that nobody need look again and again.

Where the kernel gives none, ``able`` is false and the caller must look.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from collections.abc import Callable
from pathlib import Path

IN_MODIFY = 0x2
_libc = ctypes.CDLL(None, use_errno=True)


class Writes:
    """Calls ``written`` in the running loop after writes to the files that were added."""

    def __init__(self, written: Callable[[], None]) -> None:
        self._written = written
        self._watches: dict[Path, int] = {}
        self._inotify: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.able:
            asyncio.get_running_loop().add_reader(self._inotify, self._read)

    @property
    def able(self) -> bool:
        """Whether the kernel tells at all; it limits how many may be told."""
        return self._inotify >= 0

    def add(self, path: Path) -> bool:
        """Be told of writes to a file; it is made if it is not there. False where it cannot be."""
        if path in self._watches:
            return True
        with contextlib.suppress(OSError):
            path.touch()
        watch = _libc.inotify_add_watch(self._inotify, os.fsencode(path), IN_MODIFY)
        if watch >= 0:
            self._watches[path] = watch
        return bool(watch >= 0)

    def remove(self, path: Path) -> None:
        """Be told no more of this file."""
        watch = self._watches.pop(path, None)
        if watch is not None:
            _libc.inotify_rm_watch(self._inotify, watch)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._inotify, 1 << 16)
        self._written()

    def close(self) -> None:
        """Be told nothing any more."""
        if self.able:
            asyncio.get_running_loop().remove_reader(self._inotify)
            os.close(self._inotify)
            self._inotify = -1
