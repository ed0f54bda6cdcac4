"""Take in the source files of jobs, and give them up once no job names them."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from django.conf import settings
from django.core.files.base import File
from django.utils import timezone

from portal.models import Upload, User
from portal.refusals import Refused

UNNAMED_FOR = timedelta(days=1)
"""How long an upload may lie without a job that names it."""
MEBIBYTE = 1024 * 1024


class TooLarge(Refused):
    """What was sent is larger than the limit."""

    def __init__(self, field: str, limit: int) -> None:
        size = f"{limit // MEBIBYTE} MiB" if limit >= MEBIBYTE else f"{limit} bytes"
        super().__init__(
            {
                field: f"It is larger than {size}. Leave out data sets and caches: name them in "
                ".tidepoolignore, or let the job fetch them."
            },
            id="upload-too-large",
        )


def receive_upload(user: User, file: File[bytes], *, field: str = "file") -> Upload:
    """Keep a file with its size and SHA-256, read piece by piece.

    Refused (``TooLarge``) above UPLOAD_LIMIT bytes, and when it has no usable name or no content.
    """
    # Browsers of Windows send whole paths; only the last part names the file.
    name = PurePosixPath((file.name or "").replace("\\", "/")).name
    if not name or name in {".", ".."} or len(name) > 200 or not name.isprintable():
        raise Refused({field: "Give the file a name of 1 to 200 printable characters."})
    hashed, size = hashlib.sha256(), 0
    for piece in file.chunks():
        size += len(piece)
        if size > settings.UPLOAD_LIMIT:
            raise TooLarge(field, settings.UPLOAD_LIMIT)
        hashed.update(piece)
    if not size:
        raise Refused({field: f"{name} is empty; choose a file with content."})
    file.seek(0)
    upload = Upload(owner=user, filename=name, size=size, sha256=hashed.hexdigest())
    # The store's own name, so that no user's name ever becomes a path.
    upload.file.save(upload.sha256[:32], file, save=False)
    upload.save()
    return upload


def discard_upload(upload: Upload) -> None:
    """Remove a file that no job names; refused while one does."""
    if upload.jobs.exists():
        raise Refused("Jobs name this file, which keeps it.", id="in-use", conflict=True)
    upload.delete()
    upload.file.delete(save=False)


def discard_uploads(now: datetime | None = None) -> int:
    """Remove the uploads that no job names any more, a day after they came; answer how many."""
    before = (now or timezone.now()) - UNNAMED_FOR
    stale = list(Upload.objects.filter(jobs=None, created_at__lt=before)[:1000])
    for upload in stale:
        discard_upload(upload)
    return len(stale)
