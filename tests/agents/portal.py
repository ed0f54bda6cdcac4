"""A tiny portal in the test's own process: speaks the protocol, remembers what it was told."""

from __future__ import annotations

import asyncio
import http
from collections.abc import Callable
from typing import Any

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from agents.protocol import (
    SUBPROTOCOL,
    Desired,
    DesiredState,
    Facts,
    Hello,
    Launch,
    Output,
    OutputHeld,
    Ping,
    Pong,
    Prefetch,
    ReplicaFact,
    State,
    Telemetry,
    Want,
    Welcome,
    decode_up,
    encode,
)

TOKEN = "a-node-token"
PATIENCE_S = 75.0


def wish(job: int = 1, *command: str, want: Want = Want.RUNNING, **more: Any) -> Desired:
    """A replica wanted, by default the only one of its job."""
    more.setdefault("rank", 0)
    more.setdefault("epoch", 1)
    if command:
        more.setdefault("launch", Launch(command=list(command)))
    return Desired(job=job, want=want, **more)


class Portal:
    """Keeps the newest facts and all output; sends what the test wants."""

    def __init__(self, *, lease_s: float = 20.0) -> None:
        self.lease_s = lease_s
        self.number = 0
        self.desired: list[Desired] = []
        self.hints: list[Prefetch] = []
        self.prefetched: list[str] = []
        self.hellos: list[Hello] = []
        self.facts: dict[tuple[int, int, int], ReplicaFact] = {}
        self.held_at: dict[State, int] = {}
        """Bytes of output that were here when job 1 was first told to be so."""
        self.history: list[ReplicaFact] = []
        self.output: dict[tuple[int, int], bytes] = {}
        self.telemetry: list[Telemetry] = []
        self.uploads: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.mute = False
        """Answer no ping."""
        self.refusing = False
        """Accept no connection."""
        self.greeting: Any = None
        """What to answer Hello with, in place of Welcome."""
        self.port = 0
        self._socket: ServerConnection | None = None
        self._server: Server | None = None
        self._news = asyncio.Condition()

    async def __aenter__(self) -> Portal:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Listen, on the same port as before."""
        self._server = await serve(
            self._converse,
            "127.0.0.1",
            self.port,
            subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]
            process_request=self._request,
            ping_interval=None,
            max_size=None,
            compression=None,
            close_timeout=0.2,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Drop every connection and stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def url(self) -> str:
        """What the agent is told."""
        return f"http://127.0.0.1:{self.port}"

    def _request(self, _: ServerConnection, request: Request) -> Response | None:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _answer(http.HTTPStatus.FORBIDDEN, b"no")
        if request.path in self.uploads:
            self.fetched.append(request.path)
            return _answer(http.HTTPStatus.OK, self.uploads[request.path])
        if request.path != "/agents/link/" or self.refusing:
            return _answer(http.HTTPStatus.NOT_FOUND, b"no such thing")
        return None

    async def _converse(self, socket: ServerConnection) -> None:
        self._socket = socket
        try:
            async for frame in socket:
                assert isinstance(frame, bytes)
                message = decode_up(frame)
                async with self._news:
                    await self._hear(socket, message)
                    self._news.notify_all()
        except ConnectionClosed:
            pass
        finally:
            if self._socket is socket:
                self._socket = None

    async def _hear(self, socket: ServerConnection, message: Any) -> None:
        match message:
            case Hello():
                self.hellos.append(message)
                self.facts = {}
                held = {f"{d.job}/{d.rank}": 0 for d in self.desired}
                held |= {f"{job}/{rank}": len(data) for (job, rank), data in self.output.items()}
                welcome = Welcome(node="n1", lease_s=self.lease_s, output=held)
                await socket.send(encode(self.greeting or welcome))
                if self.number:
                    await self.send(self._state())
            case Ping() if not self.mute:
                await socket.send(encode(Pong(number=message.number, desired=self.number)))
            case Facts():
                self.facts = {(f.job, f.rank, f.epoch): f for f in message.replicas}
                self.history.extend(message.replicas)
                for fact in message.replicas:
                    self.held_at.setdefault(fact.state, len(self.output.get((1, 0), b"")))
                self.prefetched = message.prefetched
            case Output():
                await self._keep(socket, message)
            case Telemetry():
                self.telemetry.append(message)

    async def _keep(self, socket: ServerConnection, piece: Output) -> None:
        key = piece.job, piece.rank
        have = self.output.get(key, b"")
        assert piece.offset <= len(have), f"output of {key} has a gap at {len(have)}"
        self.output[key] = have + piece.data[len(have) - piece.offset :]
        held = OutputHeld(job=piece.job, rank=piece.rank, offset=len(self.output[key]))
        await socket.send(encode(held))

    async def send(self, message: Any) -> None:
        """Send a message to the agent; bytes go as they are."""
        assert self._socket is not None
        await self._socket.send(message if isinstance(message, bytes | str) else encode(message))

    async def want(self, *desired: Desired) -> None:
        """Want exactly these replicas."""
        self.number += 1
        self.desired = list(desired)
        if self._socket is not None:
            await self.send(self._state())

    async def hint(self, *hints: Prefetch) -> None:
        """Ask for these images ahead, and for what is wanted as before."""
        self.hints = list(hints)
        await self.want(*self.desired)

    def _state(self) -> DesiredState:
        return DesiredState(number=self.number, replicas=self.desired, prefetch=self.hints)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until the condition holds, looking after each message."""
        try:
            async with asyncio.timeout(PATIENCE_S), self._news:
                await self._news.wait_for(condition)
        except TimeoutError:
            raise AssertionError(
                f"not so: facts {[msgspec.json.encode(f) for f in self.facts.values()]}, "
                f"output { ({k: v[-200:] for k, v in self.output.items()}) }"
            ) from None

    async def fact(self, state: State, job: int = 1, rank: int = 0, epoch: int = 1) -> ReplicaFact:
        """Wait until a replica is in a state."""
        key = job, rank, epoch
        await self.until(lambda: key in self.facts and self.facts[key].state is state)
        return self.facts[key]

    async def stored(self, checkpoint: int, epoch: int = 1) -> ReplicaFact:
        """Wait until a checkpoint of job 1 was stored, or could not be."""
        key = 1, 0, epoch

        def settled() -> bool:
            fact = self.facts.get(key)
            return fact is not None and bool(fact.checkpoint == checkpoint or fact.error)

        await self.until(settled)
        return self.facts[key]

    async def said(self, text: bytes, job: int = 1, rank: int = 0) -> None:
        """Wait until a replica's whole output is this."""
        await self.until(lambda: self.output.get((job, rank)) == text)

    async def linked(self, times: int = 1) -> Hello:
        """Wait until the agent has said hello so many times."""
        await self.until(lambda: len(self.hellos) >= times)
        return self.hellos[-1]


def _answer(status: http.HTTPStatus, body: bytes) -> Response:
    headers = Headers({"Content-Length": str(len(body)), "Connection": "close"})
    return Response(status.value, status.phrase, headers, body)
