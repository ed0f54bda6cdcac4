"""Processes that a test starts end with it, also where it is killed."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def with_parent(number: signal.Signals = signal.SIGTERM) -> Callable[[], None]:
    """Answer what a child does before it becomes its program, to be sent this when we are gone.

    It follows the thread that has started it.
    """

    def follow() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, number)

    return follow
