"""Writers queue for the one pen of SQLite: in a process, and between processes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import OperationalError, transaction

from portal import connections
from portal.sqlite.base import DatabaseWrapper

pytestmark = pytest.mark.django_db(transaction=True)
WRITERS, EACH = 4, 25


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "counts.sqlite3"
    with sqlite3.connect(path) as rows:
        rows.execute("pragma journal_mode=wal")
        rows.execute("create table counts (number integer)")
        rows.execute("insert into counts values (0)")
    rows.close()
    yield path


def connect(path: Path, timeout_s: float = 20) -> DatabaseWrapper:
    told = connections.database(f"sqlite:///{path}")
    told["OPTIONS"]["timeout"] = timeout_s
    extra = {"TIME_ZONE": None, "CONN_HEALTH_CHECKS": False, "AUTOCOMMIT": True}
    return DatabaseWrapper({**told, **extra, "ATOMIC_REQUESTS": False}, alias="counts")


def begin(writer: DatabaseWrapper) -> None:
    writer.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)


def end(writer: DatabaseWrapper) -> None:
    writer.commit()
    writer.set_autocommit(True)


def count_up(path: Path) -> None:
    writer = connect(path)
    for _ in range(EACH):
        begin(writer)
        with writer.cursor() as cursor:
            number = cursor.execute("select number from counts").fetchone()[0]
            cursor.execute("update counts set number = %s", [number + 1])
        end(writer)
    writer.close()


def test_nothing_is_lost_between_threads(path: Path) -> None:
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(count_up, [path] * WRITERS))
    with sqlite3.connect(path) as rows:
        assert rows.execute("select number from counts").fetchone()[0] == WRITERS * EACH
    rows.close()


def test_a_pen_that_another_process_holds_is_waited_for(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("begin immediate")
    writing = threading.Thread(target=count_up, args=[path])
    writing.start()
    other.execute("commit")
    writing.join(60)
    assert other.execute("select number from counts").fetchone()[0] == EACH
    other.close()


def test_who_waits_in_vain_is_told_and_leaves_the_queue(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    writer = connect(path, timeout_s=0.05)
    with pytest.raises(OperationalError, match="locked"):
        begin(writer)
    writer.close()
    other.execute("rollback")
    other.close()
    count_up(path)


def test_an_error_puts_the_pen_down() -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            raise ZeroDivisionError
