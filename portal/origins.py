"""Refuse WebSockets that another site's page opens with a visitor's cookies."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier


class SameOrigin:
    """Let a socket through when its Origin is the host that it calls, or when it has none.

    Only browsers send an Origin, and they always do; agents and command line clients send none
    and show a token.
    """

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        headers = dict(scope["headers"])
        origin = headers.get(b"origin")
        if origin is not None:
            host = urlsplit(origin.decode("latin-1")).netloc
            if host != headers.get(b"host", b"").decode("latin-1"):
                return await WebsocketDenier()(scope, receive, send)
        return await self.application(scope, receive, send)
