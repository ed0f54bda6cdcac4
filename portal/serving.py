"""Serves pages and API: one hop into one of a fixed pool of threads for each request."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

THREADS = 8


class PooledHandler(ASGIHandler):
    """Django's handler makes a new thread, hence a new connection, for every request, and goes to
    and fro between thread and loop for each middleware that cannot wait.

    Here all of them, and the view, run in one thread, one of ``THREADS`` that keep their
    connections. Only what streams comes back to the loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self._idle: asyncio.LifoQueue[ThreadPoolExecutor] | None = None

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: FBT001, FBT002 - as there
        """One chain without a coroutine in it, whatever the server speaks."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        executors = self._executors()
        executor = await executors.get()
        try:
            with body:
                await self._serve(executor, scope, body, receive, send)
        finally:
            executors.put_nowait(executor)

    async def _serve(
        self, executor: ThreadPoolExecutor, scope: Any, body: IO[bytes], receive: Any, send: Any
    ) -> None:
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        response = await loop.run_in_executor(executor, context.run, self._answer, scope, body)
        if response.streaming:
            await self._stream(executor, response, receive, send)
        else:
            await self.send_response(response, send)

    def _answer(self, scope: Any, body: IO[bytes]) -> Any:
        """All of a request that may block."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, refused = self.create_request(scope, body)
        response: Any = refused if request is None else self.get_response(request)
        response._handler_class = self.__class__
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if isinstance(response, HttpResponse):
            response.close()  # its content is whole; what was opened for it can go
        return response

    async def _stream(
        self, executor: ThreadPoolExecutor, response: HttpResponseBase, receive: Any, send: Any
    ) -> None:
        """Send a response as it is made, until it is over or nobody listens any more."""
        context = ThreadSensitiveContext()
        token = SyncToAsync.thread_sensitive_context.set(context)
        SyncToAsync.context_to_thread_executor[context] = executor
        sending = asyncio.create_task(self.send_response(response, send))
        gone = asyncio.create_task(receive())
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, gone):
                task.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)
            SyncToAsync.context_to_thread_executor.pop(context, None)
            SyncToAsync.thread_sensitive_context.reset(token)
            await asyncio.get_running_loop().run_in_executor(executor, response.close)

    def _executors(self) -> asyncio.LifoQueue[ThreadPoolExecutor]:
        if self._idle is None:
            self._idle = asyncio.LifoQueue()
            for _ in range(THREADS):
                self._idle.put_nowait(ThreadPoolExecutor(1, thread_name_prefix="page"))
        return self._idle
