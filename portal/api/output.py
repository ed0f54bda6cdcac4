"""What a job's replicas print, while it runs and afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.http import Http404, HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.access import access_job
from portal.actions.output import output_size, path_of, read_output
from portal.api.auth import caller
from portal.api.streaming import SIZE, stream
from portal.refusals import Refused

MOST = 4 * 1024 * 1024


class OutputView(APIView):
    """stdout and stderr of one replica, as one text.

    To follow it, ask again from ``X-Next-Offset`` on until ``X-Ended`` is true and nothing comes.
    """

    @extend_schema(
        parameters=[
            OpenApiParameter("offset", int, description="First byte; negative: from the end."),
            OpenApiParameter("limit", int, description=f"Most bytes, up to {MOST}."),
            OpenApiParameter("download", bool, description="The whole of it, as a file."),
        ],
        responses={(200, "text/plain"): OpenApiTypes.STR},
    )
    def get(self, request: Request, pk: int, rank: int) -> HttpResponse | StreamingHttpResponse:
        job = access_job(caller(request), pk)
        if rank >= job.replicas:
            raise Http404(f"Job {pk} has ranks 0 to {job.replicas - 1}.")
        if request.query_params.get("download"):
            pieces = pieces_of(path_of(job.id, rank))
            return stream(
                request, pieces, filename=f"job-{pk}-rank-{rank}.log", content_type="text/plain"
            )
        size = output_size(job.id, rank)
        offset = number(request, "offset", 0)
        start = min(size, max(0, size + offset) if offset < 0 else offset)
        limit = min(MOST, max(1, number(request, "limit", 65536)))
        text = read_output(job.id, rank, start, limit)
        response = HttpResponse(text, content_type="text/plain; charset=utf-8")
        response["X-Offset"] = str(start)
        response["X-Next-Offset"] = str(start + len(text))
        response["X-Size"] = str(max(size, start + len(text)))
        response["X-Ended"] = "true" if job.ended else "false"
        response["Cache-Control"] = "no-store"
        return response


def number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    try:
        return int(text) if text else default
    except ValueError:
        raise Refused({name: f"Give a number of bytes, not {text[:20]!r}."}) from None


def pieces_of(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while piece := file.read(SIZE):
                yield piece
    except FileNotFoundError:
        return
