"""SQLite for many threads of a few processes: whoever wants to write waits no longer than needed.

SQLite has one writer at a time and no queue: who finds the pen taken sleeps, up to 100 ms at a
time, also when it was put down in the meantime. Here the threads of a process queue for a lock,
and the one whose turn it is looks every millisecond whether the other processes have put it down.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import defaultdict
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

LOOK_S = 0.001

_queues: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class DatabaseWrapper(base.DatabaseWrapper):
    """Differs from Django's in how a transaction begins; ``timeout`` holds for the whole wait."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._queue: threading.Lock | None = None

    def _start_transaction_under_autocommit(self) -> None:
        timeout_s = float(self.settings_dict["OPTIONS"].get("timeout", 5.0))
        until = time.monotonic() + timeout_s
        queue = _queues[str(self.settings_dict["NAME"])]
        if not queue.acquire(timeout=timeout_s):
            raise OperationalError("database is locked")
        self._queue = queue
        try:
            self._begin(until, timeout_s)
        except BaseException:
            self._step_out()
            raise

    def _begin(self, until: float, timeout_s: float) -> None:
        self.ensure_connection()
        with self.wrap_database_errors:
            self.connection.execute("PRAGMA busy_timeout=0")
            try:
                while not self._may_write(until):
                    time.sleep(LOOK_S)
            finally:
                # A statement outside of transactions waits as SQLite does.
                self.connection.execute(f"PRAGMA busy_timeout={int(1000 * timeout_s)}")

    def _may_write(self, until: float) -> bool:
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            return False
        return True

    def _step_out(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.release()

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]
        self._step_out()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._step_out()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._step_out()
