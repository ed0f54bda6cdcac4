"""Strangers, bad requests and bad jobs get a clear answer and harm nobody."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from portal.demo.fleet import Fleet
from tests.product import Product, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
FORKS = "import os, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(60)\n"


def submit(fleet: Fleet, *command: str, file: tuple[str, bytes] | None = None) -> dict[str, Any]:
    fields = {"name": "harm", "tenant": fleet.tenant, "tier": "standard", "command": list(command)}
    if file is None:
        answer = fleet.http.post("jobs/", json=fields)
    else:
        words = " ".join(command)
        answer = fleet.http.post("jobs/", data={**fields, "command": words}, files={"file": file})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def ended(fleet: Fleet, job: int) -> dict[str, Any]:
    found: dict[str, Any] = wait_for(
        lambda: (told := fleet.job(job))["ended_at"] and told, f"job {job} to end", 120
    )
    return found


def test_a_stranger_sees_no_job_and_steers_none(ana: Fleet, ben: Fleet) -> None:
    job = submit(ana, "sleep", "60")["id"]
    assert ben.http.get(f"jobs/{job}/").status_code == 404
    assert ben.http.post(f"jobs/{job}/cancel/").status_code == 404
    assert ben.http.get(f"jobs/{job}/output/0/").status_code == 404
    assert ana.job(job)["state"] != "cancelled"


def test_no_token_and_a_wrong_one_are_refused(product: Product, ana: Fleet) -> None:
    for headers in ({}, {"Authorization": "Bearer tp_wrong"}):
        answer = ana.http.build_request("GET", "jobs/")
        answer.headers.pop("Authorization")
        answer.headers.update(headers)
        assert ana.http.send(answer).status_code == 401


def test_a_bad_request_names_its_fields(ana: Fleet) -> None:
    answer = ana.http.post("jobs/", json={"tenant": "vision", "tier": "golden", "command": []})
    assert answer.status_code == 400
    assert answer.json()["fields"]


def test_an_upload_beyond_the_limit_is_refused(product: Product, ana: Fleet) -> None:
    big = ("big.bin", b"\0" * (17 * 1024 * 1024))
    fields = {"name": "big", "tenant": "vision", "tier": "basic", "command": "true"}
    answer = ana.http.post("jobs/", data=fields, files={"file": big})
    assert answer.status_code == 413
    assert answer.json()["id"] == "upload-too-large"


def test_an_archive_that_leads_out_of_its_workspace_fails_its_job_alone(
    product: Product, ana: Fleet
) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("../../../../../../tmp/tidepool-escaped")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"oops"))
    job = ended(ana, submit(ana, "true", file=("evil.tar.gz", buffer.getvalue()))["id"])
    assert job["state"] == "failed"
    assert job["error"]
    assert job["detail"]
    assert not Path("/tmp/tidepool-escaped").exists()


def test_a_command_that_does_not_exist_says_so(ana: Fleet) -> None:
    job = ended(ana, submit(ana, "no-such-program")["id"])
    assert (job["state"], job["error"]) == ("failed", "command-not-found")


@pytest.mark.criu
def test_a_job_that_forks_meets_its_limit_alone(product: Product, ana: Fleet) -> None:
    job = submit(ana, "python", "-c", FORKS)["id"]
    assert ended(ana, job)["state"] == "failed"
    assert product.healthy()
    assert ended(ana, submit(ana, "true")["id"])["state"] == "succeeded"
