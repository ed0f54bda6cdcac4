"""The socket of one node's agent: authenticate, hand on, send what is wanted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import OperationalError, close_old_connections

from agents.protocol import (
    SUBPROTOCOL,
    DesiredState,
    Down,
    Facts,
    Hello,
    Output,
    OutputHeld,
    Ping,
    Pong,
    ReplicaFact,
    Telemetry,
    Welcome,
    decode_up,
    encode,
)
from agents.waiting import end
from portal import telemetry
from portal.actions.desired import desired_states
from portal.actions.facts import accept_facts
from portal.actions.linking import HEARD_EVERY_S, LEASE_S, heard, hello, output_held, unplugged
from portal.actions.output import append_output, may_print
from portal.actions.tokens import digest
from portal.consumers.hints import Hints
from portal.consumers.readings import Readings
from portal.events import UseEvent, send
from portal.models import Node

log = logging.getLogger(__name__)

KNOWN_S = 1.0
"""How long it is taken for granted that a node speaks for a rank."""
UNAUTHORISED, SUPERSEDED, MALFORMED = 4401, 4409, 4400


POOL = ThreadPoolExecutor(16, thread_name_prefix="agents")
"""Python's own has six on two cores: nodes that wait for a lock would keep others from a ping."""


async def in_thread(act: Callable[..., Any], *args: Any) -> Any:
    """Run blocking code in a pool thread; one thread for all would queue every node."""
    return await asyncio.get_running_loop().run_in_executor(POOL, _connected, act, args)


def _connected(act: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    close_old_connections()
    try:
        return act(*args)
    finally:
        close_old_connections()


def bearer_of(scope: Mapping[str, Any]) -> str:
    """The bearer token of a request's headers; empty when there is none."""
    for name, value in scope.get("headers", ()):
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return str(value[7:].decode("latin-1")).strip()
    return ""


def node_of(token: str) -> Node | None:
    return Node.objects.filter(token_digest=digest(token)).first() if token else None


async def read_states(nodes: Collection[int]) -> Mapping[int, DesiredState]:
    found: dict[int, DesiredState] = await in_thread(desired_states, nodes)
    return found


STATES = Readings(read_states)
"""What is wanted of nodes; a step of a job concerns all of its nodes at the same moment."""


def desired_number(node: int) -> int:
    return Node.objects.values_list("desired_number", flat=True).get(pk=node)


def note_use(node: str, told: Telemetry) -> None:
    """Keep a node's second, and show it on open pages."""
    use = telemetry.keep(node, told)
    send(UseEvent(kind="use", node=node, at=use["at"], devices=use["devices"]), "use")


class Reports:
    """Facts that wait to be taken: of each replica the newest."""

    def __init__(self) -> None:
        self._number = 0
        self._prefetched: list[str] = []
        self._facts: dict[tuple[int, int, int], ReplicaFact] = {}
        self._arrived = asyncio.Event()

    def add(self, facts: Facts) -> None:
        """Have these taken next, together with what waits already."""
        self._number, self._prefetched = facts.number, facts.prefetched
        self._facts |= {(fact.job, fact.rank, fact.epoch): fact for fact in facts.replicas}
        self._arrived.set()

    async def next(self) -> Facts:
        """Wait for facts and answer all there are."""
        await self._arrived.wait()
        self._arrived.clear()
        replicas = list(self._facts.values())
        taken = Facts(number=self._number, replicas=replicas, prefetched=self._prefetched)
        self._facts = {}
        return taken


class AgentConsumer(AsyncWebsocketConsumer):
    """Carries desired state down and facts, telemetry and output up.

    It stands without the broker, which only brings news sooner: while that is away no node loses
    its link, and with it its lease.
    """

    channel_layer_alias = "none"
    """Channels would let the socket end with the broker; ``Hints`` come beside it."""
    node: Node | None = None
    greeted = False
    deaf = False
    """Nobody hears any more what is sent."""
    heard_at = 0.0
    use = Telemetry(at=0.0)
    sent = -1

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection; whatever ends it, nothing that it began goes on."""
        self.tasks: list[asyncio.Task[None]] = []
        try:
            await super().__call__(scope, receive, send)
        finally:
            await end(self.tasks)

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Hand a message on at once; Channels would first close old connections in a thread."""
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        node = await in_thread(node_of, bearer_of(self.scope))
        if node is None:
            await self.close(code=UNAUTHORISED)
            return
        self.node = node
        self.fresh = asyncio.Event()
        self.reported = Reports()
        self.used = asyncio.Event()
        self.known: dict[tuple[int, int, int], float] = {}
        await self.accept(subprotocol=SUBPROTOCOL)
        hints = Hints(node.id, fresh=self.fresh.set, superseded=self._give_way)
        works = (self._keep_sending(), self._keep_accepting(), self._keep_noting())
        self.tasks += [asyncio.create_task(self._do(work)) for work in (hints.listen(), *works)]

    async def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Its agent says everything again over the next connection, so a failure ends this one."""
        try:
            await work
        except Exception:
            log.exception("the link of %s has failed", self.node)
            await self.close()

    async def disconnect(self, code: int) -> None:
        self.deaf = True
        await end(self.tasks)
        if self.node is not None and code != SUPERSEDED:
            await in_thread(unplugged, self.node.id)

    async def _give_way(self) -> None:
        """A node has one agent: another connection of it has come."""
        await self.close(code=SUPERSEDED)

    async def tell(self, message: Down) -> None:
        """Send a message, unless nobody hears it: the end of the connection is on its way then."""
        if self.deaf:
            return
        try:
            await self.send(bytes_data=encode(message))
        except OSError:
            self.deaf = True

    async def close(self, code: Any = None, reason: Any = None) -> None:
        """Close the socket, once."""
        if not self.deaf:
            self.deaf = True
            try:
                await super().close(code, reason)
            except OSError:
                log.debug("%s had gone already", self.node)

    async def _keep_sending(self) -> None:
        """Send the desired state whenever it changed; many changes at once are one message."""
        while True:
            await self.fresh.wait()
            self.fresh.clear()
            if not self.greeted or self.node is None:
                continue
            try:
                state = await STATES.of(self.node.id)
            except (KeyError, OperationalError):
                log.warning("could not read the desired state of %s", self.node, exc_info=True)
                await asyncio.sleep(1)
                self.fresh.set()
                continue
            self.sent = state.number
            await self.tell(state)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        try:
            message = decode_up(bytes_data or b"")
        except msgspec.DecodeError as error:
            log.warning("%s sent what is not of the protocol: %s", self.node, error)
            await self.close(code=MALFORMED)
            return
        assert self.node is not None
        match message:
            case Hello():
                await self._greet(message)
            case Ping():
                await self._sign_of_life()
                # A renewal that the broker lost is noticed here.
                newest = await in_thread(desired_number, self.node.id)
                if newest > self.sent:
                    self.fresh.set()
                await self.tell(Pong(number=message.number, desired=newest))
            case Facts():
                self.reported.add(message)
            case Telemetry():
                self.use = message
                self.used.set()
            case Output():
                await self._keep(message)

    async def _greet(self, message: Hello) -> None:
        assert self.node is not None
        self.node = await in_thread(hello, self.node.id, message)
        held = await in_thread(output_held, self.node.id)
        await self.tell(Welcome(node=self.node.name, lease_s=LEASE_S, output=held))
        self.greeted = True
        self.fresh.set()

    async def _keep_accepting(self) -> None:
        """Take what is reported; what comes meanwhile is taken together the next time."""
        assert self.node is not None
        while True:
            await self._accept(self.node.id, await self.reported.next())

    async def _keep_noting(self) -> None:
        """Note the newest second of the node; pings do not wait for the broker that keeps it."""
        assert self.node is not None
        while True:
            await self.used.wait()
            self.used.clear()
            await in_thread(note_use, self.node.name, self.use)

    async def _accept(self, node: int, facts: Facts) -> None:
        for attempt in range(3):
            try:
                await in_thread(accept_facts, node, facts)
                break
            except OperationalError:
                if attempt == 2:
                    raise
                await asyncio.sleep(0.2)
        await self._sign_of_life()

    async def _keep(self, piece: Output) -> None:
        """Keep what a replica printed, if it is this node that speaks for it."""
        assert self.node is not None
        seat = (piece.job, piece.rank, piece.epoch)
        if time.monotonic() - self.known.get(seat, 0.0) > KNOWN_S:
            if not await in_thread(may_print, self.node.id, *seat):
                return
            self.known[seat] = time.monotonic()
        held = await in_thread(append_output, piece.job, piece.rank, piece.offset, piece.data)
        await self.tell(OutputHeld(job=piece.job, rank=piece.rank, offset=held))

    async def _sign_of_life(self) -> None:
        assert self.node is not None
        if time.monotonic() - self.heard_at < HEARD_EVERY_S:
            return
        self.heard_at = time.monotonic()
        if self.greeted and not await in_thread(heard, self.node.id):
            await self.close(code=SUPERSEDED)
