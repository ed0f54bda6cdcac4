"""The page of the ledger: what was promised, what came of it, for whom it is shown."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from portal.models import Job, Move, Tenant, User
from tests.portal.api.test_promises import book, this_hour
from tests.portal.pages.conftest import Browser


def text(answer: Any) -> str:
    return (b"".join(answer) if answer.streaming else answer.content).decode()


@pytest.fixture
def short(make_job: Callable[..., Job]) -> Job:
    """A job of vision that got too little an hour ago, because it was preempted."""
    job, hour = make_job("short"), this_hour() - timedelta(hours=1)
    book(job, hour, 600.0)
    begins = hour.timestamp()
    Move.objects.create(
        job=job, kind="preempt", began_at=hour, stopped_at=begins, resumed_at=begins + 900
    )
    return job


def test_members_see_their_tenants_ledger_and_no_other(
    browser: Browser, short: Job, alice: User, charlie: User, root: User
) -> None:
    for user in (alice, root):
        page = text(browser(user).get("/promises/"))
        assert "broken for 1 of 1 job-hour" in page
        assert f"/jobs/{short.id}/#receipts" in page
        assert "preempted" in page
    page = text(browser(charlie).get("/promises/"))
    assert "Nothing was owed in this time" in page
    assert "short" not in page


def test_a_job_has_a_ledger_of_its_own(
    browser: Browser, short: Job, alice: User, charlie: User
) -> None:
    page = text(browser(alice).get(f"/promises/?job={short.id}"))
    assert "Promises of" in page
    assert "short" in page
    assert browser(charlie).get(f"/promises/?job={short.id}").status_code == 404
    assert browser(alice).get("/promises/?job=x").status_code == 404


def test_the_address_says_which_time_is_shown(browser: Browser, short: Job, alice: User) -> None:
    early = (this_hour() - timedelta(days=3)).strftime("%Y-%m-%dT%H:%MZ")
    client = browser(alice)
    assert "Nothing was owed" in text(client.get(f"/promises/?until={early}"))
    for hours in (24, 168, 720, 2160, 5):
        assert "broken for 1" in text(client.get(f"/promises/?hours={hours}"))
    assert client.get("/promises/?until=nonsense&hours=-3").status_code == 200


def test_cells_follow_the_clock_of_the_user(browser: Browser, short: Job, alice: User) -> None:
    alice.time_zone = "Asia/Kolkata"
    alice.save()
    assert "IST" in text(browser(alice).get("/promises/?hours=168"))


@pytest.mark.parametrize(("address", "column"), [("ledger.csv", "tenant"), ("jobs.csv", "name")])
def test_the_ledger_can_be_downloaded(
    browser: Browser, short: Job, alice: User, charlie: User, address: str, column: str
) -> None:
    short.name = "=1+1"
    short.save()

    rows = list(csv.DictReader(text(browser(alice).get(f"/promises/{address}")).splitlines()))

    assert len(rows) == 1
    assert rows[0][column] == {"tenant": "vision", "name": "'=1+1"}[column]
    assert float(rows[0]["delivered_device_s"]) == 600
    assert datetime.fromisoformat(rows[0]["hour"]) == this_hour() - timedelta(hours=1)
    assert text(browser(charlie).get(f"/promises/{address}")).count("\n") == 1


def test_a_download_is_narrowed_as_the_page_is(
    browser: Browser, short: Job, root: User, language: Tenant, make_job: Callable[..., Job],
    charlie: User,
) -> None:  # fmt: skip
    book(make_job("other", tenant=language, owner=charlie), this_hour(), 3600.0)
    client = browser(root)
    assert len(text(client.get("/promises/jobs.csv?hours=168")).splitlines()) == 3
    (_, line) = text(client.get("/promises/jobs.csv?hours=168&tenant=language")).splitlines()
    assert "other" in line
