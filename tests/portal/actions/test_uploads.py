"""Source files: how they come, and when they go."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from portal.actions.uploads import discard_uploads, receive_upload
from portal.models import Job, Tenant, Tier, Upload, User
from portal.refusals import Refused


@pytest.fixture(autouse=True)
def own_folder(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


def test_an_upload_is_named_by_its_content(alice: User) -> None:
    content = b"x" * 300_000
    upload = receive_upload(alice, SimpleUploadedFile("a.tar", content))
    assert upload.sha256 == hashlib.sha256(content).hexdigest()
    assert upload.size == len(content)
    assert Path(upload.file.path).read_bytes() == content


@pytest.mark.parametrize("name", ["..", "a\nb", "x" * 201, "a\x1b[1m"])
def test_a_name_that_is_none_is_refused(name: str, alice: User) -> None:
    file = SimpleUploadedFile("a", b"x")
    file._name = name  # Django's own cleaning would hide it from us
    with pytest.raises(Refused) as refused:
        receive_upload(alice, file)
    assert "file" in refused.value.fields


def test_the_limit_is_counted_not_believed(alice: User, settings: Any) -> None:
    settings.UPLOAD_LIMIT = 100
    file = SimpleUploadedFile("a", b"x" * 101)
    file.size = 1
    with pytest.raises(Refused) as refused:
        receive_upload(alice, file)
    assert refused.value.id == "upload-too-large"
    assert receive_upload(alice, SimpleUploadedFile("a", b"x" * 100)).size == 100


def test_what_no_job_names_is_discarded_after_a_day(
    alice: User, vision: Tenant, tiers: dict[str, Tier], tmp_path: Path
) -> None:
    old, used, _ = (
        receive_upload(alice, SimpleUploadedFile(name, b"x")) for name in ("old", "used", "new")
    )
    now = timezone.now()
    Upload.objects.filter(id__in=[old.id, used.id]).update(created_at=now - timedelta(days=2))
    Job.objects.create(
        name="a", owner=alice, tenant=vision, tier=tiers["basic"], upload=used, submitted_at=now
    )

    assert discard_uploads(now) == 1

    assert sorted(Upload.objects.values_list("filename", flat=True)) == ["new", "used"]
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2
