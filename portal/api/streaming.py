"""Answer with bytes that are made while they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from urllib.parse import quote

from channels.db import DatabaseSyncToAsync
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from rest_framework.request import Request

SIZE = 256 * 1024


def stream(
    request: Request | HttpRequest, pieces: Iterator[bytes], *, filename: str, content_type: str
) -> StreamingHttpResponse:
    """Send pieces as a download, each as soon as it is there.

    Under ASGI Django would gather an ordinary iterator whole before it sends the first byte.
    """
    inner = request._request if isinstance(request, Request) else request
    content = in_thread(pieces) if isinstance(inner, ASGIRequest) else pieces
    response = StreamingHttpResponse(content, content_type=content_type)
    plain = filename.encode("ascii", "replace").decode().translate(str.maketrans('"\\', "__"))
    response["Content-Disposition"] = (
        f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename)}"
    )
    # Whatever a job wrote is shown as what it is, never run as a page of ours.
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


async def in_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    # Each piece may be read in another thread, which must not keep its connection.
    following = DatabaseSyncToAsync(lambda: next(pieces, None), thread_sensitive=False)
    while (piece := await following()) is not None:
        yield piece
