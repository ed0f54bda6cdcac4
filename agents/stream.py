"""One placement's output: a file on the node, seen as its part of the replica's whole output.

The file begins at 0; the portal counts over all placements. ``marks`` tie the two together: pairs
(offset in the file, offset in the whole). The first is where the placement began. Each further one
is where a part of a flood was left out; there the whole has a notice of fixed length, and then the
file goes on.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import os
import time
from pathlib import Path

Marks = list[tuple[int, int]]

NOTICE = b"\n[tidepool left out %016d bytes of output]\n"
NOTICE_LENGTH = len(NOTICE % 0)
BACKLOG = 16 << 20
"""Bytes that may wait in a file before the middle of them is left out."""
KEPT = 1 << 20
"""Bytes that are kept of the end of such a backlog."""


class Stream:
    """How far one placement's output was sent; offsets are in the whole output by default."""

    def __init__(self, job: int, rank: int, path: Path, marks: Marks, epoch: int = 0) -> None:
        self.job = job
        self.rank = rank
        self.epoch = epoch
        self.path = path
        self.marks = [(int(at), int(whole)) for at, whole in marks]
        self.sent = self.marks[0][1]
        self._released = 0
        self._allowance: float | None = None
        self._filled_at = 0.0

    def end(self) -> int:
        """Where the whole output ends now."""
        try:
            size = self.path.stat().st_size
        except OSError:
            size = 0
        return max(self.sent, self._start(-1) + size - self.marks[-1][0])

    def _start(self, index: int) -> int:
        """Where the file's bytes begin that follow a mark, past its notice."""
        first = index in (0, -len(self.marks))
        return self.marks[index][1] + (0 if first else NOTICE_LENGTH)

    def read(self, size: int) -> bytes:
        """The next bytes to send, at most ``size``; empty when there are none."""
        index = self._index(self.sent)
        if self.sent < self._start(index):
            return self._notice(index)[self.sent - self.marks[index][1] :]
        if index + 1 < len(self.marks):
            size = min(size, self.marks[index + 1][1] - self.sent)
        try:
            with self.path.open("rb") as file:
                file.seek(self._local(self.sent))
                return file.read(size)
        except FileNotFoundError:
            return b""

    def _index(self, whole: int) -> int:
        return max(0, bisect.bisect_right([mark[1] for mark in self.marks], whole) - 1)

    def _local(self, whole: int) -> int:
        index = self._index(whole)
        return self.marks[index][0] + max(0, whole - self._start(index))

    def _notice(self, index: int) -> bytes:
        ended = self.marks[index - 1][0] + self.marks[index][1] - self._start(index - 1)
        return NOTICE % (self.marks[index][0] - ended)

    def skip_flood(self, *, ended: bool = False) -> bool:
        """Leave out the middle of too long a backlog; true when a mark was added."""
        end = self.end()
        waiting = end - self.sent
        if waiting <= (4 * KEPT if ended else BACKLOG) or self.sent < self.marks[-1][1]:
            return False
        self.marks.append((self._local(end) - KEPT, max(self.sent, self._start(-1))))
        return True

    def rewind(self, held: int) -> None:
        """The other side holds the output up to here: go on from there, back or forth."""
        self.sent = max(self.marks[0][1], min(held, self.end()))

    def allow(self, size: int, rate: float, burst: float) -> bool:
        """Whether ``size`` bytes may go now, at ``rate`` bytes a second and ``burst`` at once."""
        now = time.monotonic()
        saved = burst if self._allowance is None else self._allowance
        self._allowance = min(burst, saved + (now - self._filled_at) * rate)
        self._filled_at = now
        if self._allowance < size:
            return False
        self._allowance -= size
        return True

    def release(self, held: int) -> None:
        """Give the disk back what the other side holds, in whole MiB; offsets stay. Best effort."""
        length = self._local(min(held, self.end())) // KEPT * KEPT
        if length <= self._released:
            return
        self._released = length
        with contextlib.suppress(OSError):
            descriptor = os.open(self.path, os.O_WRONLY)
            try:
                _fallocate(descriptor, PUNCH_HOLE_KEEP_SIZE, 0, length)
            finally:
                os.close(descriptor)


PUNCH_HOLE_KEEP_SIZE = 0x03
_fallocate = ctypes.CDLL(None, use_errno=True).fallocate
_fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
