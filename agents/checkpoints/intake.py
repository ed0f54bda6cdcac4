"""Pages taken from CRIU as it writes them, so that a dump need not go through the disk.

CRIU writes each ``pages-N.img`` from its first byte to its last, by ``splice``. Pipes that stand
under these names bring the pages here without a copy. They are cut into pieces and named, and only
what no kept image of the replica holds is written down: into a file as long as CRIU's would be,
with holes where the rest belongs.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from fcntl import F_SETPIPE_SZ, fcntl
from pathlib import Path
from types import TracebackType

import blake3

from agents.checkpoints.errors import told
from agents.checkpoints.leaning import IMAGES, Base, is_pages
from agents.checkpoints.manifest import Entry
from agents.checkpoints.memory import WINDOW, Cutter
from agents.checkpoints.tree import Piece, digest_of_zeros

AHEAD = 8
"""Pipes that stand ready beyond those in use. A page file for which none does is left where CRIU
writes it.
"""
_ROOM = 1 << 20
"""Bytes in a pipe, and read at once."""
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
Places = dict[bytes, tuple[bytes, int]]
"""By digest, a file of this node and the place in it."""


@dataclass(slots=True)
class _Flow:
    """One page file on its way."""

    name: str
    pipe: int
    used: bool = False
    file: int = -1
    size: int = 0
    buffer: bytearray = field(default_factory=bytearray)
    filled: int = 0
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    """Length and digest of each; no digest where all is zeros."""


class Intake:
    """A context around a dump into ``images``; leaving it waits for the last page.

    ``base`` is an image of the same replica that this node holds. ``aside`` is a folder on the disk
    of ``images`` for what ``base`` lacks, and no longer needed when that has been stored; without
    a base the files come out in ``images``, whole. The replica must stand still until the context
    is left, for the pages on their way are its own. Raises ``StoreFullError`` or ``OSError`` where
    they cannot be written: the dump has come to its end by then and the replica is unharmed.
    """

    def __init__(
        self, images: Path, aside: Path, *, base: Base | None = None, window: int = WINDOW
    ) -> None:
        self.lean = base is not None
        self._all = self._written = 0
        self._images = images
        self._aside = aside
        self._held = dict(_held(base)) if base else {}
        self._cutter = Cutter(window)
        self._flows: list[_Flow] = []
        self._number = 0
        self._poll = select.poll()
        self._failed: Exception | None = None
        self._bell = (-1, -1)
        self._thread = threading.Thread(target=self._work, name="intake", daemon=True)

    def __enter__(self) -> Intake:
        with told("The node's folder for checkpoints"):
            shutil.rmtree(self._aside, ignore_errors=True)
            for folder in (self._images, self._aside):
                folder.mkdir(parents=True, exist_ok=True)
            for _ in range(AHEAD):
                self._lay()
        self._bell = os.pipe2(os.O_CLOEXEC)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.write(self._bell[1], b"!")
        self._thread.join()
        files = [flow.file for flow in self._flows if flow.file >= 0]
        for handle in (*self._bell, *files, *(flow.pipe for flow in self._flows)):
            os.close(handle)
        for flow in self._flows:
            place = self._images / flow.name
            place.unlink(missing_ok=True)
            if flow.used and not self.lean and not self._failed:
                (self._aside / flow.name).rename(place)
        self._flows = [flow for flow in self._flows if flow.used]
        if error is None and self._failed is not None:
            raise self._failed

    @property
    def likeness(self) -> float:
        """Share of all bytes that the base has; 1 where there was none."""
        return 1 - self._written / max(self._all, 1) if self.lean else 1.0

    def discard(self) -> None:
        """Remove what was written aside."""
        shutil.rmtree(self._aside, ignore_errors=True)

    def files(self) -> Iterator[tuple[Entry, list[Piece]]]:
        """Yield each page file that was taken, and its pieces: named, and where to read them."""
        folder = self._aside if self.lean else self._images
        for flow in self._flows:
            entry = Entry(path=flow.name.encode(), kind="file", mode=0o600, size=flow.size)
            path = os.fsencode(folder / flow.name)
            pieces: list[Piece] = []
            offset = 0
            for length, digest in flow.pieces:
                if digest:
                    source, place = self._held.get(digest, (path, offset))
                    pieces.append(Piece(entry, source, offset, length, digest, place))
                offset += length
            yield entry, pieces

    def _lay(self) -> None:
        """Make a pipe, open for reading before CRIU looks for it: it need not wait then."""
        self._number += 1
        place = self._images / f"pages-{self._number}.img"
        try:
            os.mkfifo(place, 0o600)
        except FileExistsError:
            return
        pipe = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            fcntl(pipe, F_SETPIPE_SZ, _ROOM)
        self._flows.append(_Flow(place.name, pipe))
        self._poll.register(pipe, select.POLLIN)

    def _work(self) -> None:
        """Read until the bell rings and every pipe is empty.

        Whatever fails, pages are taken on and thrown away: CRIU must come to its end by itself.
        """
        self._poll.register(self._bell[0], select.POLLIN)
        ended = False
        while True:
            ready = self._poll.poll(0 if ended else None)
            flows = {flow.pipe: flow for flow in self._flows}
            for pipe, _ in ready:
                if pipe == self._bell[0]:
                    ended = True
                    self._poll.unregister(pipe)
                elif not self._receive(flows[pipe]):
                    self._poll.unregister(pipe)
            if ended and not ready:
                return

    def _receive(self, flow: _Flow) -> int:
        """Read once from a pipe; return how many bytes came, 0 when its writer has closed it."""
        if not flow.used:
            flow.used = True
            flow.buffer = bytearray(_ROOM + self._cutter.most)
            with self._failing():
                self._lay()
        with memoryview(flow.buffer) as view:
            came = os.readv(flow.pipe, [view[flow.filled :]])
            flow.filled += came
            with self._failing():
                if not self._failed:
                    self._take(flow, view, last=came == 0)
            if self._failed:
                flow.filled = 0
        if not came:
            flow.buffer = bytearray()
        return came

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            with told("The node's folder for checkpoints"):
                yield
        except Exception as error:
            self._failed = self._failed or error

    def _take(self, flow: _Flow, view: memoryview, *, last: bool) -> None:
        """Cut and name what has come, write down what is new; a piece begun waits for its end."""
        start = flow.size
        at = done = 0
        while at < flow.filled and (last or flow.filled - at >= self._cutter.most):
            begin, at = at, self._cutter.end(view, at, flow.filled)
            piece = view[begin:at]
            digest = blake3.blake3(piece).digest()
            if digest == digest_of_zeros(at - begin):
                digest = b""
            if not digest or digest in self._held:
                self._write(flow, view[done:begin], start + done)
                done = at
            flow.pieces.append((at - begin, digest))
        self._write(flow, view[done:at], start + done)
        flow.size += at
        self._all += at
        view[: flow.filled - at] = view[at : flow.filled]
        flow.filled -= at
        if last:
            os.ftruncate(self._file(flow), flow.size)

    def _write(self, flow: _Flow, data: memoryview, place: int) -> None:
        while data:
            written = os.pwrite(self._file(flow), data, place)
            self._written += written
            place += written
            data = data[written:]

    def _file(self, flow: _Flow) -> int:
        if flow.file < 0:
            flow.file = os.open(self._aside / flow.name, _MAKE, 0o600)
        return flow.file


def let_go(images: Path) -> None:
    """Let a dump whose pages nobody takes any more, for its agent was killed, come to its end.

    It may wait for ever to open a pipe. It then fails as it does when a reader goes away; one that
    has not come so far writes files.
    """
    for place in images.glob("pages-*.img"):
        if place.is_fifo():
            pipe = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            place.unlink(missing_ok=True)
            os.close(pipe)


def _held(base: Base) -> Iterator[tuple[bytes, tuple[bytes, int]]]:
    """Yield by digest where the pages of a kept image are."""
    for entry in base.manifest.tree(IMAGES):
        if is_pages(entry.path):
            path = os.fsencode(base.images) + b"/" + entry.path
            for extent in entry.extents:
                yield extent.digest, (path, extent.offset)
