"""Another site's page can't open a socket with a visitor's cookies; agents, without Origin, can."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator

from portal.origins import SameOrigin

# A refusal is a consumer of Channels, which looks after database connections.
pytestmark = pytest.mark.django_db


async def welcome(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})


@pytest.mark.parametrize(
    ("origin", "accepted"),
    [
        (None, True),
        (b"http://portal.example:8000", True),
        (b"https://portal.example:8000", True),
        (b"http://portal.example", False),
        (b"https://evil.example", False),
        (b"null", False),
    ],
)
def test_the_origin_must_be_the_host(origin: bytes | None, *, accepted: bool) -> None:
    headers = [(b"host", b"portal.example:8000")]
    if origin is not None:
        headers.append((b"origin", origin))

    async def answer() -> str:
        scope = {"type": "websocket", "path": "/", "headers": headers}
        socket = ApplicationCommunicator(SameOrigin(welcome), scope)
        await socket.send_input({"type": "websocket.connect"})
        told = await socket.receive_output(30)
        socket.stop(exceptions=False)
        return str(told["type"])

    assert async_to_sync(answer)() == f"websocket.{'accept' if accepted else 'close'}"
