"""A process that takes pages from CRIU as it writes them: started once, it forks for each dump.

So dumps of one node share neither Python's lock nor the agent's time. A child ends with the agent's
end of its connection: CRIU finds nobody who reads then, and undoes the dump.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import shutil
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fcntl import F_SETPIPE_SZ, fcntl
from pathlib import Path

import blake3
import msgspec

from agents.checkpoints.errors import CheckpointError, told
from agents.checkpoints.memory import Cutter
from agents.checkpoints.tree import digest_of_zeros

AHEAD = 8
"""Pipes that stand ready beyond those in use. A page file for which none does is left where CRIU
writes it.
"""
DIGEST = 32
END = b"!"
"""What the agent says when the dump has come to its end."""

_ROOM = 1 << 20
"""Bytes in a pipe, and read at once."""
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_LENGTH = struct.Struct("<Q")


class Order(msgspec.Struct, array_like=True):
    """What to take."""

    images: str
    aside: str
    lean: bool
    held: bytes
    """Digests of what the node holds already, one after the other."""
    window: int


class TakenFile(msgspec.Struct, array_like=True, gc=False):
    """One page file."""

    name: str
    size: int
    pieces: list[tuple[int, bytes]]
    """Length and digest of each; no digest where all is zeros."""


class Taken(msgspec.Struct, array_like=True):
    """What was taken; of a failure its id and sentence."""

    files: list[TakenFile]
    bytes_all: int = 0
    bytes_written: int = 0
    failure: str = ""
    sentence: str = ""


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


class Taker:
    """Takes the pages of one dump; see ``Intake`` for what is asked of it."""

    def __init__(self, order: Order, bell: int) -> None:
        held = order.held
        self._order = order
        self._held = {held[at : at + DIGEST] for at in range(0, len(held), DIGEST)}
        self._images, self._aside = Path(order.images), Path(order.aside)
        self._all = self._written = 0
        self._cutter = Cutter(order.window)
        self._flows: list[_Flow] = []
        self._number = 0
        self._poll = select.poll()
        self._failed: CheckpointError | None = None
        self._bell = bell
        with self._failing():
            shutil.rmtree(self._aside, ignore_errors=True)
            for folder in (self._images, self._aside):
                folder.mkdir(parents=True, exist_ok=True)
            for _ in range(AHEAD):
                self._lay()

    def taken(self) -> Taken:
        """What has come so far, or why it could not be taken."""
        failed = self._failed
        return Taken(
            [TakenFile(flow.name, flow.size, flow.pieces) for flow in self._flows if flow.used],
            self._all,
            self._written,
            failed.id if failed else "",
            str(failed or ""),
        )

    def finish(self) -> None:
        """Remove the pipes; without a base the files come into their place."""
        for flow in self._flows:
            place = self._images / flow.name
            with self._failing():
                place.unlink(missing_ok=True)
                if flow.used and not self._order.lean and not self._failed:
                    (self._aside / flow.name).rename(place)

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

    def work(self) -> bool:
        """Read until the agent says that the dump has ended and every pipe is empty; False if the
        agent is gone.

        Whatever fails, pages are taken on and thrown away: CRIU must come to its end by itself.
        """
        self._poll.register(self._bell, select.POLLIN)
        ended = False
        while True:
            ready = self._poll.poll(0 if ended else None)
            flows = {flow.pipe: flow for flow in self._flows}
            for pipe, _ in ready:
                if pipe == self._bell:
                    ended = True
                    self._poll.unregister(pipe)
                    if os.read(pipe, 1) != END:
                        return False
                elif not self._receive(flows[pipe]):
                    self._poll.unregister(pipe)
            if ended and not ready:
                return True

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
        except CheckpointError as error:
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


def send(connection: socket.socket, message: msgspec.Struct) -> None:
    """Send one message."""
    data = msgspec.msgpack.encode(message)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> bytes:
    """Wait for one message. Raises ``EOFError`` if the other end is gone."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    return _exactly(connection, length)


def _exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray(length)
    rest = memoryview(data)
    while rest:
        came = connection.recv_into(rest)
        if not came:
            raise EOFError
        rest = rest[came:]
    return bytes(data)


def take(connection: socket.socket) -> None:
    """Serve one dump: an order comes, what stands ready is told, then what was taken."""
    order = msgspec.msgpack.decode(receive(connection), type=Order)
    taker = Taker(order, connection.fileno())
    send(connection, taker.taken())
    if taker.work():
        taker.finish()
        send(connection, taker.taken())


def serve(agent: socket.socket) -> None:
    """Fork for each connection that the agent hands over, until the agent is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    while True:
        said, (*handles,), _, _ = socket.recv_fds(agent, 1, 1)
        if not said:
            return
        connection = socket.socket(fileno=handles[0])
        if os.fork() == 0:
            gc.disable()
            agent.close()
            with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
                take(connection)
            os._exit(0)
        connection.close()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
