"""Accounts and uploads over the API."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.models import Job, Upload, User
from tests.portal.api.conftest import Api

API = "/api/v1"
PASSWORD = "long enough 7"


def test_preferences_are_kept(alice: User, api: Api) -> None:
    client = api(alice)
    told = {"theme": "dark", "time_zone": "Europe/Zurich"}
    shown = client.patch(f"{API}/me/", told, format="json").json()
    assert {key: shown[key] for key in told} == told
    for bad in ({"theme": "pink"}, {"time_zone": "Mars/Base"}):
        answer = client.patch(f"{API}/me/", bad, format="json")
        assert list(answer.json()["fields"]) == list(bad)


def test_a_password_changes_only_with_the_present_one(alice: User, api: Api) -> None:
    client = api(alice)
    wrong = {"old_password": "x", "new_password": PASSWORD}
    weak = {"old_password": "alice", "new_password": "12345678"}
    good = {"old_password": "alice", "new_password": PASSWORD}
    for told, field in ((wrong, "old_password"), (weak, "new_password")):
        answer = client.post(f"{API}/me/password/", told, format="json")
        assert list(answer.json()["fields"]) == [field]
    assert client.post(f"{API}/me/password/", good, format="json").status_code == 204
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


def test_a_new_password_ends_the_other_sessions(
    alice: User, browser_of: Callable[[User], Client]
) -> None:
    here, elsewhere = browser_of(alice), browser_of(alice)
    told = {"old_password": "alice", "new_password": PASSWORD}

    here.post(f"{API}/me/password/", told, content_type="application/json")

    statuses = [client.get(f"{API}/me/").status_code for client in (here, elsewhere)]
    assert statuses == [200, 401]


def test_an_admin_makes_and_ends_accounts(root: User, api: Api) -> None:
    client = api(root)
    told = {"username": "dora", "password": PASSWORD}
    assert client.post(f"{API}/users/", told, format="json").status_code == 201
    again = client.post(f"{API}/users/", told, format="json")
    assert again.json()["id"] == "taken"
    ended = client.patch(f"{API}/users/dora/", {"active": False}, format="json").json()
    assert ended["active"] is False
    assert client.patch(f"{API}/users/none/", {}, format="json").status_code == 404


@pytest.mark.parametrize(
    ("field", "value"), [("username", "a b"), ("password", "short"), ("email", "nowhere")]
)
def test_a_bad_account_is_refused(field: str, value: str, root: User, api: Api) -> None:
    told = {"username": "dora", "password": PASSWORD, field: value}
    answer = api(root).post(f"{API}/users/", told, format="json")
    assert list(answer.json()["fields"]) == [field]
    assert not User.objects.filter(username="dora").exists()


@pytest.mark.parametrize("told", [{"admin": False}, {"active": False}])
def test_an_admin_does_not_lock_themselves_out(told: dict[str, bool], root: User, api: Api) -> None:
    assert api(root).patch(f"{API}/users/root/", told, format="json").status_code == 409


def send(client: Any, name: str, content: bytes) -> Any:
    file = SimpleUploadedFile(name, content)
    return client.post(f"{API}/uploads/", {"file": file}, format="multipart")


def test_an_upload_is_kept_with_its_digest(alice: User, api: Api, settings: Any) -> None:
    answer = send(api(alice), "train.py", b"print()\n").json()
    assert answer["size"] == 8
    assert answer["sha256"] == hashlib.sha256(b"print()\n").hexdigest()
    assert settings.MEDIA_ROOT in Path(Upload.objects.get().file.path).parents


def test_an_empty_file_is_refused(alice: User, api: Api) -> None:
    answer = send(api(alice), "empty.py", b"")
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["file"]


def test_a_files_name_never_becomes_a_path(alice: User, api: Api, settings: Any) -> None:
    answer = send(api(alice), "C:\\work\\..\\train.py", b"x")
    assert answer.json()["filename"] == "train.py"
    kept = [path for path in settings.MEDIA_ROOT.rglob("*") if path.is_file()]
    assert len(kept) == 1


def test_an_upload_that_a_job_names_stays(alice: User, api: Api, job: Job) -> None:
    client = api(alice)
    upload = send(client, "train.py", b"x").json()["id"]
    Job.objects.update(upload=upload)
    assert client.delete(f"{API}/uploads/{upload}/").status_code == 409
    Job.objects.update(upload=None)
    assert client.delete(f"{API}/uploads/{upload}/").status_code == 204
