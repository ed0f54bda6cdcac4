"""Files of a job's workspace, kept in the chunk store once its replicas have ended."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from django.conf import settings
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render

from agents.checkpoints import (
    CheckpointError,
    NotStoredError,
    Store,
    StoredFile,
    list_files,
    open_file,
    open_store,
    zip_files,
)
from portal.access import access_job
from portal.actions.checkpoints import outputs_of
from portal.api.streaming import stream
from portal.views.visitors import Visitor, signed_in

SHOWN = 200
"""Files listed a rank; all of them are in the archive."""
RANKS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files that one replica left, or why they can't be read."""

    rank: int
    files: list[StoredFile] = field(default_factory=list)
    more: int = 0
    bytes: int = 0
    error: str = ""


@signed_in()
def files(request: Visitor, id: int) -> HttpResponse:
    """The panel of files, fetched after the page: the store may be far away."""
    job = access_job(request.user, id)
    stored = outputs_of(job)
    listings = [list_rank(rank, key) for rank, key in stored[:RANKS]]
    context = {"job": job, "listings": listings, "unlisted": max(0, len(stored) - RANKS)}
    return render(request, "jobs/_files.html", context)


def the_store() -> Store:
    return open_store(settings.STORE)


def list_rank(rank: int, key: str) -> Listing:
    try:
        found = list_files(the_store(), key)
    except CheckpointError as error:
        return Listing(rank=rank, error=str(error))
    total = sum(file.size for file in found)
    return Listing(rank=rank, files=found[:SHOWN], more=max(0, len(found) - SHOWN), bytes=total)


def key_of(request: Visitor, id: int, rank: int) -> str:
    key = dict(outputs_of(access_job(request.user, id))).get(rank)
    if key is None:
        raise Http404(f"Rank {rank} of job {id} left no files.")
    return key


@signed_in()
def file(request: Visitor, id: int, rank: int, path: str) -> HttpResponseBase:
    """One file, to be saved; never shown as a page of ours."""
    key = key_of(request, id, rank)
    try:
        opened = open_file(the_store(), key, path)
    except NotStoredError as error:
        raise Http404(str(error)) from None
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    name = PurePosixPath(path).name
    response = stream(request, opened.content, filename=name, content_type=kind)
    response["Content-Length"] = str(opened.size)
    return response


@signed_in()
def archive(request: Visitor, id: int, rank: int) -> HttpResponseBase:
    """All files of a rank as one zip archive."""
    pieces = zip_files(the_store(), key_of(request, id, rank))
    name = f"job-{id}-rank-{rank}.zip"
    return stream(request, pieces, filename=name, content_type="application/zip")
