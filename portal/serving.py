"""Serves pages from a fixed pool of threads, so that each keeps its database connection."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.core.handlers.asgi import ASGIHandler

THREADS = 8


class PooledHandler(ASGIHandler):
    """Django's handler makes a new thread, hence a new connection, for every request.

    This one lends each request one of ``THREADS`` single-thread executors for as long as it lasts.
    """

    def __init__(self) -> None:
        super().__init__()
        self._idle: asyncio.LifoQueue[ThreadPoolExecutor] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        executors = self._executors()
        executor = await executors.get()
        context = ThreadSensitiveContext()
        token = SyncToAsync.thread_sensitive_context.set(context)
        SyncToAsync.context_to_thread_executor[context] = executor
        try:
            await self.handle(scope, receive, send)
        finally:
            SyncToAsync.context_to_thread_executor.pop(context, None)
            SyncToAsync.thread_sensitive_context.reset(token)
            executors.put_nowait(executor)

    def _executors(self) -> asyncio.LifoQueue[ThreadPoolExecutor]:
        if self._idle is None:
            self._idle = asyncio.LifoQueue()
            for _ in range(THREADS):
                self._idle.put_nowait(ThreadPoolExecutor(1, thread_name_prefix="page"))
        return self._idle
