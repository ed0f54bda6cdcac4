"""The form of a new job: nothing is lost on an error, and each error is at its field."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile

from portal.models import Job, Node, Tenant, Upload, User
from tests.portal.pages.conftest import Browser

FORM = {
    "command": "python train.py --name 'two words'",
    "tenant": "vision",
    "tier": "standard",
    "replicas": "2",
    "gpus_per_replica": "1",
    "environment": "SEED=7\nPATH_TO=/a=b",
    "secrets": "KEY=hush",
    "expected_s": "1 h 30 min",
    "memory_per_replica": "512 MiB",
    "checkpoint_every_s": "10 min",
    "tags": "night, sweep",
    "retries": "",
}


def test_a_job_is_submitted_as_it_was_typed(browser: Browser, node: Node, alice: User) -> None:
    answer = browser(alice).post("/jobs/new/", FORM)
    job = Job.objects.get()
    assert answer.status_code == 302
    assert answer["Location"] == f"/jobs/{job.id}/"
    assert job.command == ["python", "train.py", "--name", "two words"]
    assert job.environment == {"SEED": "7", "PATH_TO": "/a=b"}
    assert job.secrets == {"KEY": "hush"}
    assert (job.expected_s, job.memory_per_replica, job.checkpoint_every_s) == (5400, 2**29, 600)
    assert job.tags == ["night", "sweep"]
    assert (job.owner, job.tenant.slug, job.tier.slug, job.replicas) == (
        alice,
        "vision",
        "standard",
        2,
    )


def test_wrong_fields_are_named_and_the_rest_is_kept(
    browser: Browser, node: Node, alice: User
) -> None:
    wrong = {**FORM, "environment": "SEED", "expected_s": "soon", "command": "python 'x"}
    answer = browser(alice).post("/jobs/new/", wrong)
    assert answer.status_code == 422
    assert not Job.objects.exists()
    page = answer.content.decode()
    for words in ("Line 1 is not NAME=value.", "Write a time like",
                  "A quotation mark is not closed.", "KEY=hush", "night, sweep",
                  "python &#x27;x"):  # fmt: skip
        assert words in page, words


def test_a_refusal_of_the_portal_stands_at_its_field(
    browser: Browser, node: Node, alice: User
) -> None:
    answer = browser(alice).post("/jobs/new/", {**FORM, "gpus_per_replica": "60"})
    assert answer.status_code == 422
    assert answer.context["form"].errors["gpus_per_replica"]


def test_a_stranger_to_a_tenant_cannot_choose_it(
    browser: Browser, node: Node, charlie: User
) -> None:
    answer = browser(charlie).post("/jobs/new/", FORM)
    assert answer.context["form"].errors["tenant"]


def test_files_are_sent_ahead_and_survive_an_error(
    browser: Browser, node: Node, alice: User
) -> None:
    client = browser(alice)
    sent = client.post(
        "/jobs/upload/", {"file": SimpleUploadedFile("train.py", b"print(1)")}
    ).json()
    assert (sent["filename"], sent["size"]) == ("train.py", "8 B")
    wrong = client.post("/jobs/new/", {**FORM, "upload": sent["upload"], "replicas": "0"})
    assert "train.py, 8 B" in wrong.content.decode()
    client.post("/jobs/new/", {**FORM, "upload": sent["upload"]})
    assert Job.objects.get().upload_id == sent["upload"]


def test_a_file_can_come_with_the_form_itself(browser: Browser, node: Node, alice: User) -> None:
    browser(alice).post("/jobs/new/", {**FORM, "file": SimpleUploadedFile("train.py", b"print(1)")})
    upload = Job.objects.get().upload
    assert upload is not None
    assert upload.filename == "train.py"


def test_files_of_others_cannot_be_named(
    browser: Browser, node: Node, alice: User, bob: User
) -> None:
    client = browser(bob)
    sent = client.post("/jobs/upload/", {"file": SimpleUploadedFile("a.py", b"print(1)")}).json()
    answer = browser(alice).post("/jobs/new/", {**FORM, "upload": sent["upload"]})
    assert answer.context["form"].errors["upload"]


def test_an_upload_that_is_too_large_is_refused(
    browser: Browser, alice: User, settings: Any
) -> None:
    settings.UPLOAD_LIMIT = 10
    answer = browser(alice).post("/jobs/upload/", {"file": SimpleUploadedFile("big", b"x" * 11)})
    assert answer.status_code == 400
    assert "larger than" in answer.json()["detail"]
    assert not Upload.objects.exists()
    assert browser(alice).post("/jobs/upload/", {}).status_code == 400


def test_the_preview_tells_verdict_quota_and_what_is_wrong(
    browser: Browser, node: Node, alice: User
) -> None:
    client = browser(alice)
    good = client.post("/jobs/check/", FORM).content.decode()
    assert "2 devices" in good
    assert "Transparent" in good
    assert "The quota leaves" in good
    empty = client.post("/jobs/check/", {**FORM, "command": ""}).content.decode()
    assert "Fill in the command" in empty
    refused = client.post("/jobs/check/", {**FORM, "replicas": "50"}).content.decode()
    assert "Would be refused" in refused
    assert not Job.objects.exists()


def test_a_clone_fills_the_form_in(browser: Browser, job: Job, alice: User, bob: User) -> None:
    mine = browser(alice).get(f"/jobs/new/?clone={job.id}").content.decode()
    assert "python train.py" in mine
    assert "EPOCHS=3" in mine
    assert "TOKEN=hush" in mine
    theirs = browser(bob).get(f"/jobs/new/?clone={job.id}").content.decode()
    assert "EPOCHS=3" in theirs
    assert "hush" not in theirs


def test_without_a_tenant_the_form_says_whom_to_ask(
    browser: Browser, make_user: Any, tiers: Any
) -> None:
    page = browser(make_user("nobody")).get("/jobs/new/").content.decode()
    assert "You belong to no tenant yet" in page
    assert Tenant.objects.count() == 0
