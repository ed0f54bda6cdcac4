"""What replicas print: one file a rank, over all its placements."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from django.conf import settings

from portal.choices import PlacementState
from portal.events import OutputEvent, send
from portal.models import PlacedReplica, Placement

LIMIT = 256 * 1024 * 1024
"""Bytes of output kept a rank; what comes after is dropped, and the last line says so."""
NOTICE = (
    b"\n[tidepool] output beyond 256 MiB is not kept; write to a file in the workspace instead\n"
)


def path_of(job: int, rank: int) -> Path:
    """The file that holds a rank's output; it may not exist yet."""
    return Path(settings.OUTPUT) / f"{job // 1000}" / f"{job}" / f"{rank}.log"


def clear_output(job: int) -> None:
    """Remove what another job has printed under this number, in rows that were lost since."""
    folder = path_of(job, 0).parent
    if folder.exists():
        shutil.rmtree(folder)


def output_size(job: int, rank: int) -> int:
    """Bytes held."""
    try:
        return path_of(job, rank).stat().st_size
    except FileNotFoundError:
        return 0


def may_print(node: int, job: int, rank: int, epoch: int) -> bool:
    """Whether a node speaks for a rank: it was placed there, and has not begun anew since.

    What a lost node still holds would be taken for the output of the placement that took over.
    ``epoch`` 0 is of an agent that does not say.
    """
    seats = PlacedReplica.objects.filter(node_id=node, placement__job_id=job, rank=rank)
    if not epoch:
        return seats.exists()
    later = Placement.objects.filter(job_id=job, epoch__gt=epoch).exclude(state=PlacementState.HELD)
    return seats.filter(placement__epoch=epoch).exists() and not later.exists()


def append_output(job: int, rank: int, offset: int, data: bytes) -> int:
    """Keep a piece of output where it belongs, once, and answer how many bytes are held now.

    A piece that was kept before is skipped; one that leaves a gap is not kept, so that its
    sender, told how much is held, sends from there. One at a time, whatever the process: what an
    agent's broken link still brings may come beside what it sends again over the next.
    """
    path = path_of(job, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        held = os.fstat(file.fileno()).st_size
        if held >= LIMIT:
            return offset + len(data)
        if offset > held or offset + len(data) <= held:
            return held
        fresh = data[held - offset :]
        if held + len(fresh) > LIMIT:
            fresh = fresh[: LIMIT - held - len(NOTICE)] + NOTICE
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
