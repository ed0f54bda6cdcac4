"""What a job's replicas print, as text."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import Http404, HttpResponse, HttpResponseBase

from portal.access import access_job
from portal.actions.output import output_size, read_output
from portal.api.streaming import SIZE, stream
from portal.models import Job
from portal.views.visitors import Visitor, numbered, signed_in

TAIL = 256 * 1024
"""Bytes that a page shows at first; what came before can be loaded."""


def rank_of(request: Visitor, id: int, rank: int) -> Job:
    job = access_job(request.user, id)
    if rank >= job.replicas:
        raise Http404
    return job


@signed_in()
def output(request: Visitor, id: int, rank: int) -> HttpResponse:
    """A piece of the output from ``?offset=`` on, or its end; the headers say where it lies."""
    rank_of(request, id, rank)
    held = output_size(id, rank)
    begins = min(held, numbered(request, "offset", max(0, held - TAIL)))
    limit = min(TAIL, numbered(request, "limit", TAIL))
    data = read_output(id, rank, begins, limit)
    response = HttpResponse(data, content_type="text/plain; charset=utf-8")
    response["X-Offset"] = str(begins)
    response["X-Held"] = str(held)
    response["Cache-Control"] = "no-store"
    return response


@signed_in()
def download(request: Visitor, id: int, rank: int) -> HttpResponseBase:
    """The whole output of a rank as a file."""
    rank_of(request, id, rank)

    def pieces() -> Iterator[bytes]:
        at = 0
        while piece := read_output(id, rank, at, SIZE):
            at += len(piece)
            yield piece

    name = f"job-{id}-rank-{rank}.log"
    return stream(request, pieces(), filename=name, content_type="text/plain; charset=utf-8")
