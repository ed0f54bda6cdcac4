"""A job's rows, turned into the strip of its life."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from django.db.models import QuerySet
from django.utils.safestring import SafeString

from portal.choices import MoveKind, PlacementState
from portal.drawings.figures import span
from portal.drawings.strip import Life, Mark, Stretch, draw_strip
from portal.models import Job, Move, Placement

MARKS = 200
"""The most moves that are drawn; of a job that moved more often, the newest."""


def standing_moves(job: Job) -> QuerySet[Move]:
    """The moves that happened, without those that were called off."""
    return job.receipts.filter(called_off="")[:MARKS]


def draw_life(
    job: Job, placements: Sequence[Placement], moves: Iterable[Move], now: datetime
) -> SafeString:
    """Draw what became of a job from its submission to its end, or to now."""
    ends = job.ended_at or now
    moved = list(moves)
    return draw_strip(
        Life(
            begins=job.submitted_at,
            ends=ends,
            stretches=(
                Stretch(tone="waiting", begins=job.submitted_at, ends=ends),
                *(
                    part
                    for before, placement in pairwise([None, *placements])
                    if placement is not None and placement.state != PlacementState.HELD
                    for part in of_placement(placement, before, ends)
                ),
                *(part for move in moved for part in of_move(move, ends)),
            ),
            marks=tuple(mark(move) for move in moved),
        )
    )


def of_placement(
    placement: Placement, before: Placement | None, ends: datetime
) -> Iterator[Stretch]:
    last = placement.ended_at or ends
    nodes = ", ".join(dict.fromkeys(replica.node.name for replica in placement.replicas.all()))
    ran = placement.running_at
    # Its devices were promised while the job still ran on those before.
    begins = max(placement.created_at, before.ended_at) if before and before.ended_at else None
    # Coming back from a checkpoint is part of the move, which is drawn over it.
    yield Stretch(
        tone="starting", begins=begins or placement.created_at, ends=ran or last, label=nodes
    )
    if ran:
        yield Stretch(tone="running", begins=ran, ends=last, label=nodes)


def of_move(move: Move, ends: datetime) -> Iterator[Stretch]:
    if move.stopped_at is None:
        return
    begins = datetime.fromtimestamp(move.stopped_at, tz=UTC)
    back = datetime.fromtimestamp(move.resumed_at, tz=UTC) if move.resumed_at else ends
    if move.kind == MoveKind.PAUSE:
        yield Stretch(tone="paused", begins=begins, ends=back)
    elif move.kind in {MoveKind.MIGRATE, MoveKind.RESIZE}:
        yield Stretch(tone="moving", begins=begins, ends=back)
    else:
        left = min(move.left_at or back, back)
        yield Stretch(tone="moving", begins=begins, ends=left)
        yield Stretch(tone="waiting", begins=left, ends=back)


def mark(move: Move) -> Mark:
    still = f" and stood still for {span(move.downtime_s)}" if move.downtime_s is not None else ""
    words = f"{MoveKind(move.kind).label}{still}. {move.sentence}".strip()
    return Mark(at=move.began_at, kind=move.kind, title=words)
