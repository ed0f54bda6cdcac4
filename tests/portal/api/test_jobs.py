"""Jobs over the API: submitted, listed, cloned, steered."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.actions.uploads import receive_upload
from portal.models import Job, Node, Tier, Upload, User
from tests.portal.api.conftest import Api, place

JOBS = "/api/v1/jobs/"
LEAST = {"tenant": "vision", "tier": "basic", "command": ["python", "train.py"]}


def archive() -> SimpleUploadedFile:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        info = tarfile.TarInfo("train.py")
        info.size = 1
        packed.addfile(info, io.BytesIO(b"\n"))
    return SimpleUploadedFile("work.tar.gz", buffer.getvalue(), "application/gzip")


def test_a_job_is_submitted_as_json(alice: User, api: Api, tiers: dict[str, Tier]) -> None:
    told = {**LEAST, "environment": {"EPOCHS": 3}, "secrets": {"KEY": "hush"}, "tags": ["a", "b"]}

    answer = api(alice).post(JOBS, told, format="json")

    assert answer.status_code == 201, answer.content
    shown = answer.json()
    assert shown["state"] == "waiting"
    assert shown["owner"] == "alice"
    assert shown["environment"] == {"EPOCHS": "3"}
    assert shown["secrets"] == ["KEY"]
    assert "hush" not in answer.content.decode()
    assert Job.objects.get(id=shown["id"]).secrets == {"KEY": "hush"}


def test_a_list_of_jobs_is_submitted_whole(alice: User, api: Api) -> None:
    upload = receive_upload(alice, archive())
    many = [{**LEAST, "name": f"job {number}", "upload": upload.id} for number in range(30)]
    client = api(alice)
    client.get("/api/v1/me/")
    with CaptureQueriesContext(connection) as few:
        answer = client.post(JOBS, many[:3], format="json")
    assert answer.status_code == 201, answer.content
    assert [job["name"] for job in answer.json()] == ["job 0", "job 1", "job 2"]
    with CaptureQueriesContext(connection) as queries:
        assert len(client.post(JOBS, many, format="json").json()) == 30
    assert len(queries) <= len(few) + 1, "SQLite takes so many values at once"
    assert set(Job.objects.values_list("state", "upload")) == {("waiting", upload.id)}


def test_of_a_list_with_a_wrong_job_none_is_kept(
    alice: User, bob: User, charlie: User, api: Api, node: Node
) -> None:
    theirs = receive_upload(charlie, archive())
    for wrong, field, code in (
        ([LEAST, {**LEAST, "replicas": 0}], "1.replicas", 400),
        ([LEAST, {**LEAST, "tenant": "language"}], "1.tenant", 400),
        ([{**LEAST, "tier": "gold"}, LEAST, {**LEAST, "gpus_per_replica": 60}], "0.tier", 400),
        ([LEAST, {**LEAST, "upload": theirs.id}], "", 404),
        ([LEAST, 7], "1", 400),
        ([], "", 400),
        ([LEAST] * 1001, "", 400),
    ):
        answer = api(alice).post(JOBS, wrong, format="json")
        assert answer.status_code == code, answer.content
        assert not field or field in answer.json()["fields"]
    assert api(charlie).post(JOBS, [LEAST], format="json").status_code == 400
    assert Job.objects.count() == 0


def test_a_job_is_submitted_as_a_form_with_a_file(alice: User, api: Api) -> None:
    told = {
        **LEAST,
        "command": 'python train.py --name "two words"',
        "environment": "EPOCHS=3\nPATH_LIKE=a=b",
        "tags": "night, long",
        "replicas": "2",
        "file": archive(),
    }

    answer = api(alice).post(JOBS, told, format="multipart")

    assert answer.status_code == 201, answer.content
    shown = answer.json()
    assert shown["command"] == ["python", "train.py", "--name", "two words"]
    assert shown["environment"] == {"EPOCHS": "3", "PATH_LIKE": "a=b"}
    assert shown["tags"] == ["night", "long"]
    assert shown["replicas"] == 2
    upload = Upload.objects.get(id=shown["source"]["upload"])
    assert upload.filename == "work.tar.gz"
    with upload.file.open("rb") as kept:
        assert len(kept.read()) == upload.size


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tenant", "language"),
        ("tenant", ""),
        ("tier", "gold"),
        ("command", []),
        ("command", "python 'train.py"),
        ("command", 7),
        ("environment", "no equals sign"),
        ("environment", {"A": {"B": 1}}),
        ("environment", {"not a name": "1"}),
        ("secrets", "{not json"),
        ("replicas", 0),
        ("replicas", "many"),
        ("gpus_per_replica", 10**12),
        ("fewest_devices", 3),
        ("upload", 999),
        ("git", "file:///etc"),
        ("partition", "nowhere"),
        ("expected_s", -1),
        ("tags", [1]),
        ("retries", 101),
        ("internet", "perhaps"),
    ],
)
def test_a_bad_field_is_named_and_nothing_is_kept(
    alice: User, api: Api, tiers: dict[str, Tier], field: str, value: Any
) -> None:
    answer = api(alice).post(JOBS, {**LEAST, field: value}, format="json")

    if field == "upload":
        assert answer.status_code == 404
    else:
        assert answer.status_code == 400, answer.content
        assert [name.split(".")[0] for name in answer.json()["fields"]] == [field]
    assert not Job.objects.exists()


def test_a_request_that_is_no_json_is_refused(alice: User, api: Api) -> None:
    answer = api(alice).post(JOBS, "{", content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["id"] == "malformed"


def test_json_that_is_nested_without_end_is_refused(alice: User, api: Api) -> None:
    answer = api(alice).post(JOBS, "[" * 100_000, content_type="application/json")
    assert answer.status_code == 400
    assert "nested" in answer.json()["detail"]


def test_json_beyond_all_measure_is_refused(alice: User, api: Api, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = api(alice).post(JOBS, {**LEAST, "name": "x" * 2000}, format="json")
    assert answer.status_code == 413
    assert answer.json()["id"] == "too-large"


def test_an_oversize_upload_is_refused_and_leaves_nothing(
    alice: User, api: Api, settings: Any
) -> None:
    settings.UPLOAD_LIMIT = 10
    answer = api(alice).post(JOBS, {**LEAST, "file": archive()}, format="multipart")
    assert answer.status_code == 413
    assert ".tidepoolignore" in answer.json()["fields"]["file"]
    assert not Upload.objects.exists()


def test_the_file_of_a_refused_submission_is_not_kept(
    alice: User, api: Api, tiers: dict[str, Tier], settings: Any
) -> None:
    answer = api(alice).post(JOBS, {**LEAST, "tier": "gold", "file": archive()}, format="multipart")
    assert answer.status_code == 400
    assert not Upload.objects.exists()
    assert not [path for path in settings.MEDIA_ROOT.rglob("*") if path.is_file()]


def test_a_source_is_named_once(alice: User, api: Api) -> None:
    told = {**LEAST, "git": "https://example.org/x.git", "file": archive()}
    answer = api(alice).post(JOBS, told, format="multipart")
    assert answer.status_code == 400
    assert "file" in answer.json()["fields"]


def test_nobody_names_anothers_upload(alice: User, bob: User, api: Api) -> None:
    upload = api(bob).post("/api/v1/uploads/", {"file": archive()}, format="multipart").json()
    answer = api(alice).post(JOBS, {**LEAST, "upload": upload["id"]}, format="json")
    assert answer.status_code == 404


def test_check_says_what_would_become_of_it(
    alice: User, api: Api, node: Node, tiers: dict[str, Tier]
) -> None:
    client = api(alice)
    answer = client.post(f"{JOBS}check/", {**LEAST, "gpus_per_replica": 2}, format="json")
    assert answer.json() == {
        "remedy": "transparent",
        "reason": "",
        "devices": 2,
        "quota_left": 8,
    }
    refused = client.post(f"{JOBS}check/", {**LEAST, "gpus_per_replica": 3}, format="json")
    assert refused.status_code == 400
    assert not Job.objects.exists()


def test_a_clone_takes_changes_and_only_ones_own_secrets(
    alice: User, bob: User, api: Api, job: Job
) -> None:
    own = api(alice).post(f"{JOBS}{job.id}/clone/", {"name": "again"}, format="json").json()
    others = api(bob).post(f"{JOBS}{job.id}/clone/").json()

    assert own["name"] == "again"
    assert own["environment"] == {"EPOCHS": "3"}
    assert own["secrets"] == ["TOKEN"]
    assert own["cloned_from"] == others["cloned_from"] == job.id
    assert others["owner"] == "bob"
    assert others["secrets"] == []


def test_lists_show_only_the_callers_tenants(
    alice: User, charlie: User, root: User, api: Api, job: Job
) -> None:
    counts = [api(user).get(JOBS).json()["count"] for user in (alice, charlie, root)]
    assert counts == [1, 0, 1]


def names(answer: Any) -> list[str]:
    return [row["name"] for row in answer.json()["results"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["c", "b", "a"]),
        ("ordering=name", ["a", "b", "c"]),
        ("ordering=-tier", ["a", "c", "b"]),
        ("state=running", ["b"]),
        ("state=waiting,running", ["b", "a"]),
        ("state=live", ["b", "a"]),
        ("state=ended", ["c"]),
        ("tier=premium", ["a"]),
        ("tenant=vision", ["c", "b", "a"]),
        ("tenant=language", []),
        ("owner=alice", ["b", "a"]),
        ("owner=me", ["b", "a"]),
        ("owner=bob", ["c"]),
        ("tag=night", ["a"]),
        ("tag=nig", []),
        ("tag=größe", ["b"]),
        ("q=B", ["b"]),
        ("q=%", []),
    ],
)
def test_lists_are_narrowed_and_ordered(
    query: str,
    expected: list[str],
    alice: User,
    bob: User,
    api: Api,
    make_job: Callable[..., Job],
    tiers: dict[str, Tier],
) -> None:
    make_job("a", tier=tiers["premium"], tags=["night"])
    make_job("b", state="running", tags=["größe"])
    make_job("c", state="failed", owner=bob)

    assert names(api(alice).get(f"{JOBS}?{query}")) == expected


@pytest.mark.parametrize("query", ["state=gone", "ordering=secrets", "ordering=owner__password"])
def test_a_filter_that_means_nothing_is_refused(query: str, alice: User, api: Api) -> None:
    answer = api(alice).get(f"{JOBS}?{query}")
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == [query.partition("=")[0]]


def test_lists_come_in_pages(alice: User, api: Api, make_job: Callable[..., Job]) -> None:
    for number in range(5):
        make_job(str(number))
    client = api(alice)

    first = client.get(f"{JOBS}?page_size=2")
    last = client.get(f"{JOBS}?page_size=2&page=3")

    assert first.json()["count"] == 5
    assert names(first) == ["4", "3"]
    assert names(last) == ["0"]
    assert last.json()["next"] is None
    assert client.get(f"{JOBS}?page=9").status_code == 404


def test_a_job_tells_where_it_sits(alice: User, api: Api, job: Job, node: Node) -> None:
    place(job, node)

    shown = api(alice).get(f"{JOBS}{job.id}/").json()

    assert shown["nodes"] == ["node-a"]
    assert shown["devices_held"] == 1
    assert shown["seats"] == [
        {"rank": 0, "node": "node-a", "devices": ["cpu0"], "state": "running"}
    ]


def test_a_parked_job_holds_nothing(alice: User, api: Api, job: Job, node: Node) -> None:
    place(job, node, state="parked")
    assert api(alice).get(f"{JOBS}{job.id}/").json()["devices_held"] == 0


def test_a_waiting_job_is_paused_resumed_and_cancelled(alice: User, api: Api, job: Job) -> None:
    client = api(alice)
    states = [
        client.post(f"{JOBS}{job.id}/{verb}/").json()["state"]
        for verb in ("pause", "resume", "cancel")
    ]
    assert states == ["paused", "waiting", "cancelled"]
    again = client.post(f"{JOBS}{job.id}/cancel/")
    assert again.status_code == 409
    assert "clone" in again.json()["detail"]


def test_a_resize_names_the_sizes_that_work(alice: User, api: Api, job: Job) -> None:
    answer = api(alice).post(f"{JOBS}{job.id}/resize/", {"devices": 5}, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["devices"]


@pytest.mark.parametrize("id", ["0", "999999", "999999999999999999"])
def test_a_job_that_is_not_there_is_not_found(id: str, alice: User, api: Api) -> None:
    answer = api(alice).get(f"{JOBS}{id}/")
    assert answer.status_code == 404
    assert answer.json()["id"] == "not-found"


def test_everything_else_is_not_found_in_the_same_shape(alice: User, api: Api) -> None:
    answer = api(alice).get("/api/v1/nonsense")
    assert answer.status_code == 404
    assert json.loads(answer.content)["id"] == "not-found"
