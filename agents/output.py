"""Replicas' output on its way to the portal: read as it grows, sent in order, at a bounded rate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agents.protocol import Output
from agents.stream import Marks, Stream
from agents.waiting import either
from agents.writes import Writes

CHUNK = 64 << 10
GAP_S = 0.03
"""Between two rounds: what is printed meanwhile goes together."""
POLL_S = 0.03
"""Between two looks at files of which the kernel does not tell."""
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
        self._hurry = asyncio.Event()
        """Somebody waits for what is there to be sent."""
        self._writes: Writes | None = None
        self._told = True
        """Whether the kernel tells of writes to all that is open."""
        self._linked = False
        self.caught_up = asyncio.Event()
        """Since the link is up, all that was there has been sent once."""

    def open(
        self, key: str, job: int, rank: int, path: Path, marks: Marks, *, epoch: int = 0
    ) -> None:
        """Begin to send a placement's output, where the portal's count stands."""
        if key in self._streams:
            return
        stream = self._streams[key] = Stream(job, rank, path, marks, epoch)
        stream.rewind(self._held.get((job, rank), 0))
        self._watch(stream)
        self._wake.set()

    def close(self, key: str) -> None:
        """Stop sending it; what was not sent is lost."""
        stream = self._streams.pop(key, None)
        if stream is not None and self._writes is not None:
            self._writes.remove(stream.path)
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
        self._hurry.set()
        self._wake.set()
        while self._linked and stream.sent < end and time.monotonic() < deadline:
            await asyncio.sleep(0.002)

    async def pump(self, send: Send) -> None:
        """Send what appears, taking turns between the streams, until cancelled."""
        self._linked = True
        self._writes, self._told = Writes(self._wake.set), True
        for stream in self._streams.values():
            self._watch(stream)
        try:
            while True:
                self._wake.clear()
                self._hurry.clear()
                while await self._round(send):
                    pass
                self.caught_up.set()
                await either(self._hurry, GAP_S)
                await either(self._wake, self._patience())
        finally:
            self._linked = False
            self.caught_up.clear()
            self._writes.close()
            self._writes = None

    def _watch(self, stream: Stream) -> None:
        if self._writes is not None and not self._writes.add(stream.path):
            self._told = False

    def _patience(self) -> float:
        """Seconds until it looks without being told: soon where something has to wait its turn."""
        if not self._streams:
            return IDLE_S
        waiting = any(stream.end() > stream.sent for stream in self._streams.values())
        return POLL_S if waiting or not self._told else IDLE_S

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
                await send(
                    Output(
                        job=stream.job,
                        rank=stream.rank,
                        epoch=stream.epoch,
                        offset=at,
                        data=data,
                    )
                )
        return busy

    def _skip(self, key: str, stream: Stream, *, ended: bool = False) -> None:
        if stream.skip_flood(ended=ended):
            self._marked(key, stream.marks)
