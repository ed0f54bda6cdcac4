"""Replicas' output on its way to the portal: read as it grows, sent in order, at a bounded rate."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agents.protocol import Output
from agents.stream import Marks, Stream

CHUNK = 64 << 10
POLL_S = 0.03
IDLE_S = 5.0

Send = Callable[[Output], Awaitable[None]]


class Outputs:
    """All streams of this node. ``marked`` is told when a stream's marks have changed."""

    def __init__(self, bytes_per_s: int, marked: Callable[[str, Marks], None]) -> None:
        self.rate = float(bytes_per_s)
        self.burst = 4.0 * bytes_per_s
        self._marked = marked
        self._streams: dict[str, Stream] = {}
        self._held: dict[tuple[int, int], int] = {}
        self._wake = asyncio.Event()
        self._linked = False

    def open(self, key: str, job: int, rank: int, path: Path, marks: Marks) -> None:
        """Begin to send a placement's output, where the portal's count stands."""
        if key in self._streams:
            return
        stream = self._streams[key] = Stream(job, rank, path, marks)
        stream.rewind(self._held.get((job, rank), 0))
        self._wake.set()

    def close(self, key: str) -> None:
        """Stop sending it; what was not sent is lost."""
        stream = self._streams.pop(key, None)
        if stream is not None and not any(
            (s.job, s.rank) == (stream.job, stream.rank) for s in self._streams.values()
        ):
            self._held.pop((stream.job, stream.rank), None)

    def welcome(self, held: dict[tuple[int, int], int]) -> None:
        """A new link: send again what the portal lacks of the replicas that it still counts."""
        self._held = dict(held)
        for stream in self._streams.values():
            if (stream.job, stream.rank) in held:
                stream.rewind(held[stream.job, stream.rank])

    def held(self, job: int, rank: int, offset: int) -> None:
        """The portal holds this much: its place on disk is free."""
        for stream in self._streams.values():
            if (stream.job, stream.rank) == (job, rank):
                stream.release(offset)

    async def flush(self, key: str, timeout_s: float) -> None:
        """Wait until all that is in the file now was sent, the time is over, or no link is up."""
        stream = self._streams.get(key)
        if stream is None:
            return
        self._skip(key, stream, ended=True)
        deadline, end = time.monotonic() + timeout_s, stream.end()
        self._wake.set()
        while self._linked and stream.sent < end and time.monotonic() < deadline:
            await asyncio.sleep(0.002)

    async def pump(self, send: Send) -> None:
        """Send what appears, taking turns between the streams, until cancelled."""
        self._linked = True
        try:
            while True:
                if await self._round(send):
                    continue
                self._wake.clear()
                with contextlib.suppress(TimeoutError):
                    pause = POLL_S if self._streams else IDLE_S
                    await asyncio.wait_for(self._wake.wait(), pause)
        finally:
            self._linked = False

    async def _round(self, send: Send) -> bool:
        """One piece of each stream that has some and may go; false when there was none."""
        busy = False
        for key, stream in list(self._streams.items()):
            waiting = stream.end() - stream.sent
            if waiting <= 0:
                continue
            self._skip(key, stream)
            if not stream.allow(min(waiting, CHUNK), self.rate, self.burst):
                continue
            at, data = stream.sent, stream.read(CHUNK)
            if data:
                stream.sent = at + len(data)
                busy = True
                await send(Output(job=stream.job, rank=stream.rank, offset=at, data=data))
        return busy

    def _skip(self, key: str, stream: Stream, *, ended: bool = False) -> None:
        if stream.skip_flood(ended=ended):
            self._marked(key, stream.marks)
