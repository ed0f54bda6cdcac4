"""The list of jobs and a job's page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from portal.actions.output import path_of
from portal.models import Job, JobUse, Move, Node, Tenant, User
from tests.portal.api.conftest import place
from tests.portal.pages.conftest import Browser

Make = Callable[..., Job]


def names(browser: Browser, user: User, query: str) -> list[str]:
    answer = browser(user).get(f"/jobs/{query}", headers={"HX-Request": "true"})
    return [job.name for job in answer.context["page_"]]


def test_jobs_are_narrowed_down_and_sorted(
    browser: Browser, make_job: Make, alice: User, bob: User
) -> None:
    make_job("alpha", state="running", tags=["night"])
    make_job("beta", state="waiting", owner=bob, replicas=4)
    make_job("gamma", state="failed", moves=2)
    assert names(browser, alice, "") == ["gamma", "beta", "alpha"]
    assert names(browser, alice, "?state=running") == ["alpha"]
    assert names(browser, alice, "?state=live&sort=name") == ["alpha", "beta"]
    assert names(browser, alice, "?state=ended") == ["gamma"]
    assert names(browser, alice, "?q=night") == ["alpha"]
    assert names(browser, alice, "?mine=1&sort=name") == ["alpha", "gamma"]
    assert names(browser, alice, "?moved=1") == ["gamma"]
    assert names(browser, alice, "?sort=-devices")[0] == "beta"
    assert names(browser, alice, "?tenant=language") == []
    assert names(browser, alice, "?state=nonsense&sort=nonsense&page=-3") == [
        "gamma",
        "beta",
        "alpha",
    ]


def test_jobs_come_a_page_at_a_time(browser: Browser, make_job: Make, alice: User) -> None:
    for number in range(30):
        make_job(f"job-{number:02}")
    page = browser(alice).get("/jobs/").content.decode()
    assert "job-29" in page
    assert "job-00" not in page
    assert "1–25 of 30" in page  # noqa: RUF001
    assert "job-00" in browser(alice).get("/jobs/?page=2").content.decode()


def test_empty_lists_say_what_to_do(browser: Browser, make_job: Make, alice: User) -> None:
    assert "Submit the first one" in browser(alice).get("/jobs/").content.decode()
    make_job()
    assert "No job matches" in browser(alice).get("/jobs/?q=zzz").content.decode()


def test_a_waiting_job_shows_its_reason(browser: Browser, make_job: Make, alice: User) -> None:
    sentence = "Needs 8 devices on one node; the most that are free on one is 2."
    job = make_job(sentence=sentence)
    assert sentence in browser(alice).get(f"/jobs/{job.id}/").content.decode()
    assert sentence in browser(alice).get("/jobs/").content.decode()


def test_a_job_shows_where_it_runs_and_its_life(
    browser: Browser, make_job: Make, node: Node, alice: User
) -> None:
    job = make_job("resnet", state="running", started_at=timezone.now())
    placement = place(job, node)
    placement.running_at = timezone.now()
    placement.save()
    page = browser(alice).get(f"/jobs/{job.id}/").content.decode()
    assert "On node-a since" in page
    assert 'class="strip"' in page
    assert "stretch tone-running" in page


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"move_asked": True}, "It is to move elsewhere, and runs on until there is room."),
        ({"move_asked": True, "wanted_nodes": ["node-b"]}, "It is to move to node-b, and runs on"),
        ({"asked_devices": 2}, "It is to run on 2 devices, and runs on until there is room."),
        ({"asked_devices": 1}, "On node-a since"),
        ({"pause_asked": True}, "It is to be paused, as soon as it can be stopped."),
        ({"state": "moving", "sentence": "It was asked."}, "Leaving node-a. It was asked."),
    ],
)
def test_what_was_asked_of_a_job_and_is_to_come_is_told(
    browser: Browser, make_job: Make, node: Node, alice: User, asked: dict[str, Any], told: str
) -> None:
    job = make_job(**{"state": "running", "sentence": "2 devices were free.", **asked})
    placement = place(job, node)
    placement.then = "move" if job.state == "moving" else ""
    placement.save()
    page = browser(alice).get(f"/jobs/{job.id}/panels/summary/").content.decode()
    assert told in page
    assert "2 devices were free." not in page
    assert ("It is to" in page) == told.startswith("It is to")


def test_one_that_is_about_to_leave_runs_on_and_is_not_drawn_as_starting(
    browser: Browser, make_job: Make, node: Node, alice: User
) -> None:
    job = make_job(state="running", started_at=timezone.now())
    placement = place(job, node)
    placement.then, placement.running_at = "move", timezone.now()
    placement.ahead_since = timezone.now()
    placement.save()
    place(job, node, state="held")
    page = browser(alice).get(f"/jobs/{job.id}/panels/summary/").content.decode()
    assert "runs on while its image is brought to where it goes" in page
    assert page.count("stretch tone-starting") == 1


def test_the_fraction_counts_what_is_not_booked_yet(
    browser: Browser, make_job: Make, node: Node, alice: User
) -> None:
    now = timezone.now()
    job = make_job(state="running", started_at=now, running_since=now - timedelta(seconds=60))
    place(job, node)
    Job.objects.update(submitted_at=now - timedelta(seconds=60), accounted_at=None)
    assert browser(alice).get(f"/jobs/{job.id}/").context["promise_kept"] == 1.0
    Job.objects.update(accounted_at=now - timedelta(seconds=60), entitled=60.0)
    fraction = browser(alice).get(f"/api/v1/jobs/{job.id}/").json()["gpu_fraction"]
    assert 0.5 <= fraction < 0.6


def test_a_receipt_tells_what_a_move_cost(browser: Browser, make_job: Make, alice: User) -> None:
    premium = make_job("urgent")
    job = make_job("resnet", moves=1)
    Move.objects.create(
        job=job, kind="preempt", sentence="Made room for urgent.", beneficiary=premium,
        from_nodes=["node-a"], to_nodes=["node-b"], began_at=timezone.now(), stopped_at=100.0,
        resumed_at=104.25, phases={"dump": 1.5, "restore": 2.0}, bytes_raw=3 * 2**20,
    )  # fmt: skip
    page = browser(alice).get(f"/jobs/{job.id}/panels/receipts/").content.decode()
    for words in ("Preempted", "Made room for urgent.", f"for job {premium.id}", "4.25 s", "none",
                  "node-a → node-b", "3 MiB", "dump <b>1.5 s</b>"):  # fmt: skip
        assert words in page, words


def test_the_newest_checkpoints_are_shown_and_where_the_others_are_told(
    browser: Browser, job: Job, alice: User
) -> None:
    def shown(count: int) -> tuple[int, bool]:
        while job.checkpoints.count() < count:
            number = job.checkpoints.count() + 1
            job.checkpoints.create(number=number, state="committed", began_at=timezone.now())
        page = browser(alice).get(f"/jobs/{job.id}/panels/checkpoints/").content.decode()
        return page.count("Committed"), f"tidepool checkpoints {job.id}" in page

    assert shown(10) == (10, False)
    assert shown(11) == (10, True)


def test_output_is_read_from_an_offset_or_from_the_end(
    browser: Browser, job: Job, alice: User
) -> None:
    path = path_of(job.id, 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"step 1\nstep 2\n<script>alert(1)</script>\n")
    client = browser(alice)
    whole = client.get(f"/jobs/{job.id}/output/0/")
    assert whole.content == path.read_bytes()
    assert whole["Content-Type"].startswith("text/plain")
    rest = client.get(f"/jobs/{job.id}/output/0/?offset=7&limit=6")
    assert (rest.content, rest["X-Offset"], rest["X-Held"]) == (b"step 2", "7", "40")
    assert client.get(f"/jobs/{job.id}/output/1/").status_code == 404
    download = client.get(f"/jobs/{job.id}/output/0/download/")
    assert b"".join(download.streaming_content) == path.read_bytes()
    assert "attachment" in download["Content-Disposition"]


def test_a_job_without_files_says_so(browser: Browser, make_job: Make, alice: User) -> None:
    job = make_job(state="succeeded", ended_at=timezone.now())
    assert "held no files" in browser(alice).get(f"/jobs/{job.id}/files/").content.decode()
    assert browser(alice).get(f"/jobs/{job.id}/files/0.zip").status_code == 404
    assert browser(alice).get(f"/jobs/{job.id}/files/0/../../etc/passwd").status_code == 404


def test_what_a_job_was_named_is_never_markup(
    browser: Browser, make_job: Make, alice: User, vision: Tenant
) -> None:
    job = make_job("<img src=x onerror=alert(1)>", tags=["<b>"])
    for address in (f"/jobs/{job.id}/", "/jobs/", f"/jobs/{job.id}/do/cancel/"):
        page = browser(alice).get(address).content.decode()
        assert "<img" not in page
        assert "&lt;img" in page


def test_use_is_drawn_over_the_life_of_the_job(
    browser: Browser, make_job: Callable[..., Job], alice: User
) -> None:
    job = make_job(state="running", started_at=timezone.now())
    address = f"/jobs/{job.id}/panels/use/"
    assert "within ten seconds" in browser(alice).get(address).content.decode()
    JobUse.objects.create(job=job, at=timezone.now(), devices=1, utilisation=0.42, cpus=1.5)
    panel = browser(alice).get(address).content.decode()
    assert "now 42 %" in panel
    assert "CPUs" in panel
    assert "Device memory" not in panel  # none was told of
