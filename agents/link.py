"""The only file that knows the network: one WebSocket to the portal, made again when it breaks."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from agents.config import Config
from agents.fencing import Lease, uptime
from agents.protocol import (
    SUBPROTOCOL,
    DesiredState,
    Down,
    Hello,
    OutputHeld,
    Ping,
    Pong,
    Up,
    Welcome,
    decode_down,
    encode,
)
from agents.waiting import end

log = logging.getLogger("tidepool.link")

Send = Callable[[Up], Awaitable[None]]
ANSWER_S = 10.0
BACKOFF_S = (0.1, 10.0)
LARGEST_FRAME = 64 << 20
BAD_FRAMES = 20
"""So many frames that cannot be read end a connection."""


class LinkError(Exception):
    """The portal did not keep to the protocol."""


class Ears(Protocol):
    """Who is told what comes down."""

    async def hello(self) -> Hello:
        """Describe the node."""

    def welcome(self, welcome: Welcome) -> None:
        """A new link stands."""

    def desire(self, state: DesiredState) -> None:
        """Another desired state."""

    def held(self, held: OutputHeld) -> None:
        """The portal holds a replica's output up to here."""

    async def talk(self, send: Send) -> None:
        """Send facts, output and telemetry, until cancelled."""


class Link:
    """Keeps the node connected. ``run`` returns only when cancelled."""

    def __init__(self, config: Config, lease: Lease, ears: Ears) -> None:
        self.config = config
        self.lease = lease
        self.ears = ears
        self.connected = False
        self._socket: ClientConnection | None = None
        self._pings: dict[int, float] = {}
        self._dropped = asyncio.Event()
        self._number = 0
        self._have = 0
        self._behind = 0
        self._bad = 0

    async def run(self) -> None:
        """Connect, serve, and after a break connect again, ever less often, at random moments."""
        least, most = BACKOFF_S
        delay, told = least, ""
        while True:
            try:
                await self._connect()
                reason = "it was closed"
            except InvalidStatus as error:
                status = error.response.status_code
                reason = f"the portal refuses this node's token or address with HTTP {status}"
            except (OSError, WebSocketException, LinkError, TimeoutError) as error:
                reason = str(error) or type(error).__name__
            if self._number:
                delay, self._number, told = least, 0, ""
            if reason != told:
                log.warning("no link to the portal: %s", reason)
                told = reason
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(most, delay * 2)

    async def _connect(self) -> None:
        async with connect(
            self.config.link_url,
            additional_headers={"Authorization": f"Bearer {self.config.token}"},
            subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]
            compression=None,
            max_size=LARGEST_FRAME,
            ping_interval=None,
            open_timeout=ANSWER_S,
            close_timeout=1.0,
            proxy=None,
        ) as socket:
            try:
                await self._serve(socket)
            finally:
                await socket.close()

    async def _serve(self, socket: ClientConnection) -> None:
        self._socket, self._pings, self._have, self._behind, self._bad = socket, {}, 0, 0, 0
        self._dropped.clear()
        sent_at = uptime()
        await self.send(await self.ears.hello())
        async with asyncio.timeout(ANSWER_S):
            welcome = await self._receive()
        if not isinstance(welcome, Welcome):
            raise LinkError(f"the portal answered Hello with {type(welcome).__name__}")
        self.lease.renew(sent_at, welcome.lease_s)
        self.ears.welcome(welcome)
        self.connected = True
        tasks = [
            asyncio.create_task(coroutine)
            for coroutine in (
                self._listen(),
                self._ping(),
                self._until_dropped(),
                self.ears.talk(self.send),
            )
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.connected = False
            await end(tasks)

    async def send(self, message: Up) -> None:
        """Send one message; waits while the connection's buffer is full."""
        assert self._socket is not None
        await self._socket.send(encode(message))

    async def _receive(self) -> Down:
        """The next message that can be read."""
        assert self._socket is not None
        while True:
            frame = await self._socket.recv()
            try:
                if isinstance(frame, str):
                    raise msgspec.DecodeError("a text frame")
                return decode_down(frame)
            except msgspec.DecodeError as error:
                self._bad += 1
                log.warning("a frame from the portal cannot be read: %s", error)
                if self._bad >= BAD_FRAMES:
                    raise LinkError("too many frames that cannot be read") from error

    def drop(self) -> None:
        """Make the link anew: the portal then says again what it wants."""
        self._dropped.set()

    async def _until_dropped(self) -> None:
        await self._dropped.wait()
        raise LinkError("the lease has run down")

    async def _listen(self) -> None:
        while True:
            match await self._receive():
                case DesiredState() as state:
                    self._have = state.number
                    self.ears.desire(state)
                case Pong() as pong:
                    self._answered(pong)
                case OutputHeld() as held:
                    self.ears.held(held)
                case Welcome() as welcome:
                    self.lease.renew(self.lease.contact, welcome.lease_s)

    def _answered(self, pong: Pong) -> None:
        sent_at = self._pings.pop(pong.number, None)
        if sent_at is not None:
            self.lease.renew(sent_at)
        self._behind = self._behind + 1 if pong.desired > self._have else 0
        if self._behind >= 2:
            raise LinkError(f"desired state {pong.desired} was announced but did not arrive")

    async def _ping(self) -> None:
        """Renew the lease four times within its length; a portal that answers nothing is left."""
        while True:
            every = self.lease.seconds / 4
            self._number += 1
            self._pings[self._number] = uptime()
            await self.send(Ping(number=self._number))
            await asyncio.sleep(every)
            if self._pings and uptime() - min(self._pings.values()) > 3 * every:
                raise LinkError("the portal does not answer pings")
