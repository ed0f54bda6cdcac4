"""The files that a job's replicas left in their workspaces."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.checkpoints import Store, list_files, open_file, open_store, zip_files
from portal.access import access_job
from portal.actions.checkpoints import outputs_of
from portal.api.auth import caller
from portal.api.streaming import stream
from portal.models import Job

BINARY = {(200, "application/octet-stream"): OpenApiTypes.BINARY}


class FileShape(serializers.Serializer[Any]):
    """One file, with the rank of the replica that left it; ``mtime`` in seconds since 1970."""

    rank = serializers.IntegerField()
    path = serializers.CharField()
    size = serializers.IntegerField()
    mtime = serializers.FloatField()


class FilesShape(serializers.Serializer[Any]):
    """Which replicas' workspaces are stored, and the files in them."""

    ranks = serializers.ListField(child=serializers.IntegerField())
    files = FileShape(many=True)


class FilesView(APIView):
    """The files of all replicas; stored when the job ends."""

    @extend_schema(responses=FilesShape)
    def get(self, request: Request, pk: int) -> Response:
        stored = outputs_of(access_job(caller(request), pk))
        store = the_store()
        files = [
            {"rank": rank, "path": shown(file.path), "size": file.size, "mtime": file.mtime}
            for rank, key in stored
            for file in list_files(store, key)
        ]
        return Response({"ranks": [rank for rank, _ in stored], "files": files})


class FileView(APIView):
    """One file."""

    @extend_schema(
        operation_id="v1_jobs_file_retrieve",
        parameters=[OpenApiParameter("path", str, OpenApiParameter.PATH)],
        responses=BINARY,
    )
    def get(self, request: Request, pk: int, rank: int, path: str) -> StreamingHttpResponse:
        key = key_of(access_job(caller(request), pk), rank)
        store = the_store()
        # Compared with the names that are there, never made into a path of ours.
        found = next((f.path for f in list_files(store, key) if shown(f.path) == path), None)
        if found is None:
            raise Http404(f"Rank {rank} of job {pk} left no file {path!r}.")
        file = open_file(store, key, found)
        response = stream(
            request,
            file.content,
            filename=path.rpartition("/")[2],
            content_type="application/octet-stream",
        )
        response["Content-Length"] = str(file.size)
        return response


class ArchiveView(APIView):
    """All files of one replica, or of a folder of it, as a zip archive."""

    @extend_schema(
        parameters=[
            OpenApiParameter("rank", int, description="0 unless told."),
            OpenApiParameter("below", str, description="Only this folder."),
        ],
        responses=BINARY,
    )
    def get(self, request: Request, pk: int) -> StreamingHttpResponse:
        told = request.query_params.get("rank", "0")
        rank = int(told) if told.isascii() and told.isdigit() else -1
        key = key_of(access_job(caller(request), pk), rank)
        pieces = zip_files(the_store(), key, request.query_params.get("below", ""))
        name = f"job-{pk}-rank-{rank}.zip"
        return stream(request, pieces, filename=name, content_type="application/zip")


def the_store() -> Store:
    return open_store(settings.STORE)


def key_of(job: Job, rank: int) -> str:
    """Answer the manifest of a replica's workspace; ``Http404`` where none is stored."""
    for stored, key in outputs_of(job):
        if stored == rank:
            return key
    raise Http404(
        f"No files of rank {rank} of job {job.id} are stored"
        + ("." if job.ended else " yet; they are when the job ends.")
    )


def shown(path: str) -> str:
    """Answer a path as text, with ``?`` in place of what is not UTF-8."""
    return path.encode("utf-8", "replace").decode()
