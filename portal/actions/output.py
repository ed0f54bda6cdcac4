"""What replicas print: one file a rank, over all its placements."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings

from portal.events import OutputEvent, send

LIMIT = 256 * 1024 * 1024
"""Bytes of output kept a rank; what comes after is dropped, and the last line says so."""
NOTICE = (
    b"\n[tidepool] output beyond 256 MiB is not kept; write to a file in the workspace instead\n"
)


def path_of(job: int, rank: int) -> Path:
    """The file that holds a rank's output; it may not exist yet."""
    return Path(settings.OUTPUT) / f"{job // 1000}" / f"{job}" / f"{rank}.log"


def output_size(job: int, rank: int) -> int:
    """Bytes held."""
    try:
        return path_of(job, rank).stat().st_size
    except FileNotFoundError:
        return 0


def append_output(job: int, rank: int, offset: int, data: bytes) -> int:
    """Keep a piece of output where it belongs, once, and answer how many bytes are held now.

    A piece that was kept before is skipped; one that leaves a gap is not kept, so that its
    sender, told how much is held, sends from there.
    """
    held = output_size(job, rank)
    if held >= LIMIT:
        return offset + len(data)
    if offset > held or offset + len(data) <= held:
        return held
    fresh = data[held - offset :]
    if held + len(fresh) > LIMIT:
        fresh = fresh[: LIMIT - held - len(NOTICE)] + NOTICE
    path = path_of(job, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(fresh)
    event = OutputEvent(
        kind="output", job=job, rank=rank, offset=held, text=fresh.decode("utf-8", "replace")
    )
    send(event, f"job.{job}")
    return held + len(fresh)


def read_output(job: int, rank: int, offset: int = 0, limit: int = 65536) -> bytes:
    """Bytes of output from ``offset``; a negative one counts from the end."""
    try:
        with path_of(job, rank).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size + offset) if offset < 0 else offset)
            return file.read(limit)
    except FileNotFoundError:
        return b""
