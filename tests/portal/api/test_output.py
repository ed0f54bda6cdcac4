"""Output over the API: from an offset, from the end, as a download."""

from __future__ import annotations

import pytest

from portal.actions.output import append_output
from portal.choices import JobState
from portal.models import Job, User
from tests.portal.api.conftest import Api


@pytest.fixture
def address(job: Job) -> str:
    append_output(job.id, 0, 0, "step 1\nstep 2 é\n".encode())
    return f"/api/v1/jobs/{job.id}/output/0/"


def test_output_is_read_on_from_where_one_stopped(alice: User, api: Api, address: str) -> None:
    client = api(alice)

    first = client.get(f"{address}?limit=7")
    second = client.get(f"{address}?offset={first['X-Next-Offset']}")
    third = client.get(f"{address}?offset={second['X-Next-Offset']}")

    assert [answer.content.decode() for answer in (first, second, third)] == [
        "step 1\n",
        "step 2 é\n",
        "",
    ]
    assert first["Content-Type"].startswith("text/plain")
    assert first["X-Content-Type-Options"] == "nosniff"
    assert third["X-Next-Offset"] == third["X-Size"] == "17"
    assert third["X-Ended"] == "false"


def test_output_is_read_from_the_end(alice: User, api: Api, address: str) -> None:
    answer = api(alice).get(f"{address}?offset=-3")
    assert answer.content == "é\n".encode()
    assert answer["X-Offset"] == "14"


def test_an_ended_job_says_so(alice: User, api: Api, address: str, job: Job) -> None:
    Job.objects.filter(id=job.id).update(state=JobState.SUCCEEDED)
    assert api(alice).get(address)["X-Ended"] == "true"


def test_output_is_downloaded_whole(alice: User, api: Api, address: str, job: Job) -> None:
    answer = api(alice).get(f"{address}?download=1")
    assert answer.getvalue() == "step 1\nstep 2 é\n".encode()
    assert f"job-{job.id}-rank-0.log" in answer["Content-Disposition"]


@pytest.mark.parametrize("query", ["offset=x", "limit=x"])
def test_a_number_that_is_none_is_named(alice: User, api: Api, address: str, query: str) -> None:
    answer = api(alice).get(f"{address}?{query}")
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == [query.partition("=")[0]]


def test_a_rank_that_is_not_there_is_not_found(alice: User, api: Api, job: Job) -> None:
    assert api(alice).get(f"/api/v1/jobs/{job.id}/output/1/").status_code == 404


def test_a_job_without_output_has_an_empty_one(alice: User, api: Api, job: Job) -> None:
    answer = api(alice).get(f"/api/v1/jobs/{job.id}/output/0/")
    assert (answer.status_code, answer.content) == (200, b"")
