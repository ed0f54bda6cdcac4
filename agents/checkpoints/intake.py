"""Pages taken from CRIU as it writes them, so that a dump need not go through the disk.

CRIU writes each ``pages-N.img`` from its first byte to its last, by ``splice``. Pipes that stand
under these names bring the pages to a process beside the agent (``taking.py``) without a copy. They
are cut into pieces and named, and only what no kept image of the replica holds is written down:
into a file as long as CRIU's would be, with holes where the rest belongs.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from agents.checkpoints.errors import CheckpointError, StoreFullError, StoreUnreachableError
from agents.checkpoints.leaning import IMAGES, Base, is_pages
from agents.checkpoints.manifest import Entry
from agents.checkpoints.memory import WINDOW
from agents.checkpoints.taking import END, Order, Taken, receive, send
from agents.checkpoints.tree import Piece


class Intake:
    """A context around a dump into ``images``; leaving it waits for the last page.

    ``base`` is an image of the same replica that this node holds. ``aside`` is a folder on the disk
    of ``images`` for what ``base`` lacks, and no longer needed when that has been stored; without
    a base the files come out in ``images``, whole. The replica must stand still until the context
    is left, for the pages on their way are its own. Raises ``StoreFullError`` or
    ``StoreUnreachableError`` where they cannot be written: the dump has come to its end by then and
    the replica is unharmed.
    """

    def __init__(
        self, images: Path, aside: Path, *, base: Base | None = None, window: int = WINDOW
    ) -> None:
        self.lean = base is not None
        self._images = images.absolute()
        self._aside = aside.absolute()
        self._held = dict(_held(base)) if base else {}
        self._window = window
        self._taken = Taken([])

    def __enter__(self) -> Intake:
        held = b"".join(self._held)
        order = Order(str(self._images), str(self._aside), self.lean, held, self._window)
        self._connection = _server.connect()
        try:
            with _there():
                send(self._connection, order)
                self._hear()
        except BaseException:
            self._connection.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with _there():
                self._connection.sendall(END)
                self._hear()
        except CheckpointError:
            if error is None:
                raise
        finally:
            self._connection.close()

    @property
    def likeness(self) -> float:
        """Share of all bytes that the base has; 1 where there was none."""
        written, all = self._taken.bytes_written, self._taken.bytes_all
        return 1 - written / max(all, 1) if self.lean else 1.0

    def discard(self) -> None:
        """Remove what was written aside."""
        shutil.rmtree(self._aside, ignore_errors=True)

    def files(self) -> Iterator[tuple[Entry, list[Piece]]]:
        """Yield each page file that was taken, and its pieces: named, and where to read them."""
        folder = self._aside if self.lean else self._images
        for file in self._taken.files:
            entry = Entry(path=file.name.encode(), kind="file", mode=0o600, size=file.size)
            path = os.fsencode(folder / file.name)
            pieces: list[Piece] = []
            offset = 0
            for length, digest in file.pieces:
                if digest:
                    source, place = self._held.get(digest, (path, offset))
                    pieces.append(Piece(entry, source, offset, length, digest, place))
                offset += length
            yield entry, pieces

    def _hear(self) -> None:
        self._taken = msgspec.msgpack.decode(receive(self._connection), type=Taken)
        if self._taken.failure == StoreFullError.id:
            raise StoreFullError(self._taken.sentence)
        if self._taken.failure:
            raise StoreUnreachableError(self._taken.sentence)


@contextlib.contextmanager
def _there() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        raise StoreUnreachableError(
            "The process that takes a dump's pages was killed; see that the node has enough memory."
        ) from error


class _Server:
    """The process that takes pages, started when it is first needed or was killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def connect(self) -> socket.socket:
        """A connection to somebody who takes the pages of one dump."""
        near, far = socket.socketpair()
        with far, self._lock:
            for _ in range(2):
                with contextlib.suppress(OSError):
                    socket.send_fds(self._socket or self._start(), [b"!"], [far.fileno()])
                    break
                self.close()
        return near

    def close(self) -> None:
        """End it once it has nothing to do."""
        if self._socket and self._process:
            self._socket.close()
            self._process.wait()
            self._socket = None

    def _start(self) -> socket.socket:
        self._socket, far = socket.socketpair()
        with far:
            words = (sys.executable, "-W", "ignore", "-m", "agents.checkpoints.taking")
            self._process = subprocess.Popen(
                (*words, str(far.fileno())),
                stdin=subprocess.DEVNULL,
                pass_fds=(far.fileno(),),
                cwd=Path(__file__).parents[2],
                start_new_session=True,
            )
        return self._socket


_server = _Server()
atexit.register(_server.close)


def prepare() -> None:
    """Start the process that takes pages, so that the first dump need not wait for it."""
    _server.connect().close()


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
