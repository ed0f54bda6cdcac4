"""The link of an agent: what is reported is taken together, and nothing but the node ends it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.db.models import F

from agents.protocol import (
    SUBPROTOCOL,
    DesiredState,
    Down,
    Facts,
    Hello,
    Ping,
    Pong,
    ReplicaFact,
    State,
    Telemetry,
    Up,
    Welcome,
    decode_down,
    encode,
)
from portal import connections
from portal.actions.tokens import digest
from portal.consumers.agents import SUPERSEDED, AgentConsumer, Reports
from portal.models import Node

pytestmark = pytest.mark.asyncio


def fact(job: int, state: State) -> ReplicaFact:
    return ReplicaFact(job=job, rank=0, epoch=1, state=state)


async def test_the_newest_of_each_replica_is_taken_and_none_is_lost() -> None:
    reports = Reports()
    reports.add(Facts(number=1, replicas=[fact(1, State.RUNNING), fact(2, State.ABSENT)]))
    reports.add(Facts(number=2, replicas=[fact(1, State.EXITED)]))
    taken = await reports.next()
    assert taken.number == 2
    assert {f.job: f.state for f in taken.replicas} == {1: State.EXITED, 2: State.ABSENT}


async def test_what_was_taken_is_not_taken_again() -> None:
    reports = Reports()
    reports.add(Facts(number=1, replicas=[fact(1, State.RUNNING)]))
    await reports.next()
    waiting = asyncio.ensure_future(reports.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    reports.add(Facts(number=3, replicas=[]))
    assert (await waiting).replicas == []


WITHIN_S = 60


class Link(ApplicationCommunicator):
    """A socket as a node's agent opens it."""

    def __init__(self, token: str) -> None:
        scope = {
            "type": "websocket",
            "path": "/",
            "headers": [(b"authorization", f"Bearer {token}".encode())],
            "subprotocols": [SUBPROTOCOL],
        }
        super().__init__(AgentConsumer.as_asgi(), scope)

    async def say(self, message: Up) -> None:
        await self.send_input({"type": "websocket.receive", "bytes": encode(message)})

    async def output(self) -> dict[str, Any]:
        return dict(await self.receive_output(timeout=WITHIN_S))

    async def told(self) -> Down:
        return decode_down((await self.output())["bytes"])

    async def greet(self) -> None:
        await self.send_input({"type": "websocket.connect"})
        assert (await self.output())["type"] == "websocket.accept"
        await self.say(Hello(node="n", agent="1", boot="b", driver="fake"))
        assert isinstance(await self.told(), Welcome)
        assert isinstance(await self.told(), DesiredState)

    async def end(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(timeout=WITHIN_S)


@pytest.fixture
def node(transactional_db: None) -> Node:
    return Node.objects.create(name="n1", token_digest=digest("token"))


@pytest.fixture
def _no_broker(settings: Any) -> None:
    settings.CHANNEL_LAYERS = {"default": connections.channel_layer("redis://127.0.0.1:1/0")}


@pytest.mark.usefixtures("_no_broker")
async def test_a_node_keeps_its_link_while_the_broker_is_away(node: Node) -> None:
    agent = Link("token")
    await agent.greet()
    await agent.say(Telemetry(at=1.0))
    await sync_to_async(Node.objects.update)(desired_number=F("desired_number") + 1)
    await agent.say(Ping(number=7))
    answers = [await agent.told(), await agent.told()]
    (pong,) = (each for each in answers if isinstance(each, Pong))
    (state,) = (each for each in answers if isinstance(each, DesiredState))
    assert pong.desired == state.number
    await agent.end()


async def test_the_agent_that_comes_last_is_the_one(node: Node) -> None:
    first, second = Link("token"), Link("token")
    await first.greet()
    await second.greet()
    while (last := await first.output())["type"] == "websocket.send":
        pass
    assert (last["type"], last["code"]) == ("websocket.close", SUPERSEDED)
    await first.end()
    await second.end()


async def test_nothing_of_a_link_goes_on_after_it(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: Any) -> None:
        raise ValueError("gone for good")

    before = asyncio.all_tasks()
    agent = Link("token")
    await agent.greet()
    monkeypatch.setattr("portal.consumers.agents.desired_number", lost)
    await agent.say(Ping(number=1))
    with pytest.raises(ValueError, match="gone for good"):
        await agent.wait(timeout=WITHIN_S)
    assert asyncio.all_tasks() == before


async def test_a_link_whose_work_fails_is_closed(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Link("token")
    await agent.greet()
    monkeypatch.setattr("portal.consumers.agents.accept_facts", lambda *_: 1 / 0)
    await agent.say(Facts(number=1, replicas=[]))
    assert (await agent.output())["type"] == "websocket.close"
    await agent.end()
