"""Requests share a fixed pool of threads and their database connections."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.http import HttpResponse
from django.test import override_settings
from django.urls import path

from portal import serving
from portal.serving import PooledHandler

seen: list[str] = []


def view(request: Any) -> HttpResponse:
    seen.append(threading.current_thread().name)
    return HttpResponse("ok")


urlpatterns = [path("", view)]
SCOPE = {
    "type": "http", "method": "GET", "path": "/", "query_string": b"", "http_version": "1.1",
    "headers": [(b"host", b"localhost")], "scheme": "http", "server": ("localhost", 80),
}  # fmt: skip


@pytest.mark.asyncio
async def test_many_requests_use_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "THREADS", 2)
    handler = PooledHandler()
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[]):

        async def ask() -> int:
            request = ApplicationCommunicator(handler, SCOPE)
            await request.send_input({"type": "http.request", "body": b""})
            start = await request.receive_output(10)
            await request.receive_output(10)
            await request.wait()
            return int(start["status"])

        assert await asyncio.gather(*(ask() for _ in range(10))) == [200] * 10
    assert len(seen) == 10
    assert len(set(seen)) <= 2
