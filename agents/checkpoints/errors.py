"""What can go wrong with a chunk store, each with a stable id and a sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager


class CheckpointError(Exception):
    """A store or a fetch failed. ``id`` is stable, ``str()`` says what happened and what to do."""

    id = "checkpoint-failed"


class DamagedError(CheckpointError):
    """A chunk or a manifest is missing, truncated or altered; nothing was restored from it."""

    id = "image-damaged"


class StoreFullError(CheckpointError):
    """There is no room left, in the store or where an image was to be restored."""

    id = "disk-full"


class StoreUnreachableError(CheckpointError):
    """The place where the chunks are does not answer or refuses."""

    id = "store-unreachable"


class ChangedError(CheckpointError):
    """A file changed while it was read, though its replica should have been frozen."""

    id = "workspace-changed"


class NotStoredError(CheckpointError):
    """The manifest has no such file."""

    id = "no-such-file"


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def told(place: str) -> Iterator[None]:
    """Turn an ``OSError`` from within into ``StoreFullError`` or ``StoreUnreachableError``."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFullError(f"No room is left in {place}; free some space there.") from error
        raise StoreUnreachableError(f"{place} cannot be used: {error}.") from error
