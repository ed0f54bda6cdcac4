"""A body beyond the limit is refused, declared or not, and others pass untouched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from portal.limits import MULTIPART_ROOM, BodyLimit

LIMIT = 1000


@pytest.fixture(autouse=True)
def _limit(settings: Any) -> None:
    settings.UPLOAD_LIMIT = LIMIT - MULTIPART_ROOM


def post(pieces: list[bytes], declared: int | None = None) -> tuple[int, bytes]:
    """Send a body in pieces and answer the status and what came back."""
    headers = [] if declared is None else [(b"content-length", str(declared).encode())]
    waiting = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    sent: list[Any] = []

    async def echo(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while waiting:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            body += message["body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async_to_sync(BodyLimit(echo))({"type": "http", "headers": headers}, receive, send)
    return sent[0]["status"], sent[1]["body"]


def test_a_body_within_the_limit_passes() -> None:
    assert post([b"a" * 600, b"b" * 400], 1000) == (200, b"a" * 600 + b"b" * 400)


def test_a_declared_length_beyond_it_is_refused_unread() -> None:
    status, body = post([b"never read"], 1001)
    assert status == 413
    assert json.loads(body)["id"] == "upload-too-large"


def test_an_undeclared_one_is_counted() -> None:
    assert post([b"a" * 600, b"b" * 600, b"c" * 600])[0] == 413


def test_a_length_that_is_no_number_is_refused() -> None:
    status = post([], declared=-5)[0]
    assert status == 413
