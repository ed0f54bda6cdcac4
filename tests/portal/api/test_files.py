"""The files that jobs leave, over the API; no name leads out of them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.test import AsyncClient

from agents.checkpoints import open_store, store_tree
from portal.models import Job, Node, PlacedReplica, User
from tests.portal.api.conftest import Api, place


@pytest.fixture
def files(job: Job, node: Node, settings: Any, tmp_path: Path) -> str:
    """Two stored files of rank 0; answers the address of the list."""
    folder = tmp_path / "workspace"
    (folder / "out").mkdir(parents=True)
    (folder / "out" / "weights é.bin").write_bytes(b"w" * 100_000)
    (folder / "log.txt").write_text("done\n")
    (folder / "away").symlink_to("/etc/passwd")
    (tmp_path / "secret.txt").write_text("hush")
    key = store_tree(open_store(settings.STORE), folder).manifest_key
    place(job, node, state="ended")
    PlacedReplica.objects.update(outputs=key)
    return f"/api/v1/jobs/{job.id}/files/"


def test_files_are_listed(alice: User, api: Api, files: str) -> None:
    shown = api(alice).get(files).json()
    assert shown["ranks"] == [0]
    assert [(file["path"], file["size"]) for file in shown["files"]] == [
        ("log.txt", 5),
        ("out/weights é.bin", 100_000),
    ]


def test_a_file_is_downloaded(alice: User, api: Api, files: str) -> None:
    answer = api(alice).get(f"{files}0/{quote('out/weights é.bin')}")
    assert answer.getvalue() == b"w" * 100_000
    assert answer["Content-Length"] == "100000"
    assert "sandbox" in answer["Content-Security-Policy"]
    assert answer["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "out/../../secret.txt",
        "..%2fsecret.txt",
        "/etc/passwd",
        "away",
        "out",
        "out/",
        "log.txt/",
        "nothing",
        "%00",
    ],
)
def test_no_other_name_is_served(path: str, alice: User, api: Api, files: str) -> None:
    answer = api(alice).get(f"{files}0/{path}")
    assert answer.status_code == 404, answer


def test_all_files_come_as_an_archive(alice: User, api: Api, files: str, job: Job) -> None:
    answer = api(alice).get(f"/api/v1/jobs/{job.id}/files.zip")
    with zipfile.ZipFile(io.BytesIO(answer.getvalue())) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["log.txt", "out/weights é.bin"]


def test_a_folder_comes_as_an_archive(alice: User, api: Api, files: str, job: Job) -> None:
    client = api(alice)
    answer = client.get(f"/api/v1/jobs/{job.id}/files.zip?below=out")
    with zipfile.ZipFile(io.BytesIO(answer.getvalue())) as archive:
        assert archive.namelist() == ["out/weights é.bin"]
    assert client.get(f"/api/v1/jobs/{job.id}/files.zip?below=..").status_code == 404


@pytest.mark.parametrize("query", ["rank=1", "rank=x", "rank=-1", "rank=²"])
def test_a_rank_without_files_is_not_found(
    query: str, alice: User, api: Api, files: str, job: Job
) -> None:
    assert api(alice).get(f"/api/v1/jobs/{job.id}/files.zip?{query}").status_code == 404


def test_a_running_job_has_no_files_yet(alice: User, api: Api, job: Job) -> None:
    client = api(alice)
    assert client.get(f"/api/v1/jobs/{job.id}/files/").json() == {"ranks": [], "files": []}
    refused = client.get(f"/api/v1/jobs/{job.id}/files.zip")
    assert "when the job ends" in refused.json()["detail"]


def test_a_damaged_store_says_so(alice: User, api: Api, files: str, settings: Any) -> None:
    for manifest in Path(settings.STORE, "m").iterdir():
        manifest.write_bytes(b"spoilt")
    answer = api(alice).get(files)
    assert answer.status_code == 410
    assert answer.json()["id"] == "image-damaged"


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_downloads_are_streamed_under_asgi(alice: User, files: str) -> None:
    client = AsyncClient()
    await client.aforce_login(alice)
    answer = await client.get(f"{files}0/log.txt")
    content = b"".join([piece async for piece in answer.streaming_content])
    assert content == b"done\n"
