"""Network namespaces as files: made, entered and removed without another process."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TypeVar

CLONE_NEWNET = 0x40000000
MS_BIND = 4096
MNT_DETACH = 2
OWN = "/proc/thread-self/ns/net"

T = TypeVar("T")
_libc = ctypes.CDLL(None, use_errno=True)


def make(path: Path) -> None:
    """Make a new namespace and keep it at ``path``; one that is there is left as it is."""
    if kept(path):
        return
    path.touch()

    def become() -> None:
        _check(_libc.unshare(CLONE_NEWNET), "unshare")
        source, target = OWN.encode(), str(path).encode()
        _check(_libc.mount(source, target, None, ctypes.c_ulong(MS_BIND), None), "mount")
        # New interfaces shall be silent: no router solicitations, no duplicate address detection.
        with contextlib.suppress(OSError):
            Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")

    _in_thread(become)


def inside(path: Path, act: Callable[[], T]) -> T:
    """Run ``act`` in a thread of its own whose network is the one at ``path``."""

    def enter() -> T:
        with path.open() as file:
            _check(_libc.setns(file.fileno(), CLONE_NEWNET), "setns")
        return act()

    return _in_thread(enter)


def remove(path: Path) -> None:
    """Let go of the namespace; the kernel ends it when nothing is in it any more."""
    while kept(path):
        _check(_libc.umount2(str(path).encode(), MNT_DETACH), "umount")
    path.unlink(missing_ok=True)


def kept(path: Path) -> bool:
    """Whether a namespace is mounted at ``path``: namespaces lie on a file system of their own."""
    try:
        return path.stat().st_dev == Path("/proc/self/ns/net").stat().st_dev
    except OSError:
        return False


def _in_thread(act: Callable[[], T]) -> T:
    # The thread ends with its namespace, so that the agent's own threads never change theirs.
    outcome: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(act())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]


def _check(result: int, name: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
