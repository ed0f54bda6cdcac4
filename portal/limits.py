"""Refuse request bodies above the upload limit before they are written to disk."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings

MULTIPART_ROOM = 64 * 1024
"""Bytes of form fields and part headers allowed beside the uploaded file."""


class BodyLimit:
    """Answer 413 to a request whose body is larger than UPLOAD_LIMIT, declared or counted."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        limit = settings.UPLOAD_LIMIT + MULTIPART_ROOM
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > limit:
            await refuse(send)
            return
        seen = 0
        refused = False

        async def counted() -> Any:
            nonlocal seen, refused
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit and not refused:
                refused = True
                await refuse(send)
            return {"type": "http.disconnect"} if refused else message

        async def guarded(message: Any) -> None:
            if not refused:
                await send(message)

        await self.application(scope, counted, guarded)


async def refuse(send: Any) -> None:
    """Send the 413 with its stable id and its sentence."""
    limit = settings.UPLOAD_LIMIT // (1024 * 1024)
    sentence = f"The upload is larger than {limit} MiB. Leave out data sets and caches."
    error = {"id": "upload-too-large", "detail": sentence, "fields": {"file": sentence}}
    body = json.dumps(error).encode()
    await send(
        {
            "type": "http.response.start",
            "status": 413,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
