"""Sources for nodes: only with a node's token, only for jobs that are placed there."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from portal.actions.tokens import create_token
from portal.actions.uploads import receive_upload
from portal.models import Job, Placement, Upload, User
from tests.portal.api.conftest import make_node, place


@pytest.fixture
def upload(job: Job, alice: User) -> Upload:
    kept = receive_upload(alice, SimpleUploadedFile("work.tar.gz", b"files" * 1000))
    Job.objects.filter(id=job.id).update(upload=kept)
    return kept


def fetch(upload: Upload, secret: str) -> Any:
    headers = {"Authorization": f"Bearer {secret}"}
    return Client().get(reverse("agent-source", args=[upload.id]), headers=headers)


def test_a_node_fetches_the_source_of_a_job_that_is_placed_there(job: Job, upload: Upload) -> None:
    place(job, make_node("node-a", "tn_secret"))
    answer = fetch(upload, "tn_secret")
    assert answer.getvalue() == b"files" * 1000
    assert answer["X-SHA256"] == upload.sha256


def test_another_node_does_not(job: Job, upload: Upload) -> None:
    place(job, make_node("node-a", "tn_secret"))
    make_node("node-b", "tn_other")
    assert fetch(upload, "tn_other").status_code == 404


def test_nor_does_the_node_once_the_job_has_left(job: Job, upload: Upload) -> None:
    place(job, make_node("node-a", "tn_secret"))
    Placement.objects.update(state="ended")
    assert fetch(upload, "tn_secret").status_code == 404


def test_a_persons_token_is_not_a_nodes(job: Job, upload: Upload, alice: User) -> None:
    place(job, make_node("node-a", "tn_secret"))
    _, secret = create_token(alice, "laptop")
    for shown in (secret, "", "tn_guess"):
        assert fetch(upload, shown).status_code == 401


def test_there_is_nothing_at_another_number(job: Job, upload: Upload) -> None:
    place(job, make_node("node-a", "tn_secret"))
    upload.id += 1
    assert fetch(upload, "tn_secret").status_code == 404
