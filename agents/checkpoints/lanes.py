"""Work spread over a few threads, with no more of it in memory than the threads hold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def spread(work: Iterable[T], act: Callable[[T], None], lanes: int) -> None:
    """Call ``act`` on each item from ``lanes`` threads; each takes its next item when it is done.

    The first error stops all threads after their current item and is raised.
    """
    items = iter(work)
    lock = threading.Lock()
    failed = threading.Event()

    def take() -> None:
        while not failed.is_set():
            try:
                with lock:
                    item = next(items)
            except StopIteration:
                return
            except BaseException:
                failed.set()
                raise
            try:
                act(item)
            except BaseException:
                failed.set()
                raise

    if lanes <= 1:
        take()
        return
    with ThreadPoolExecutor(lanes, thread_name_prefix="lane") as pool:
        running = [pool.submit(take) for _ in range(lanes)]
    for future in running:
        future.result()
