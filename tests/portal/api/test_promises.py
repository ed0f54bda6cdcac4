"""The ledger of promises over the API: sums, the jobs that fell short, and who may see them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from portal.models import Job, Move, Promise, Tenant, Tier, User
from tests.portal.api.conftest import Api

API = "/api/v1"


def book(job: Job, hour: datetime, delivered: float, promise: float = 0.7) -> None:
    Promise.objects.create(
        job=job,
        hour=hour,
        tenant=job.tenant,
        tier=Tier.objects.get(slug="standard"),
        delivered=delivered,
        entitled=3600.0,
        promise=promise,
    )


def this_hour() -> datetime:
    return timezone.now().replace(minute=0, second=0, microsecond=0)


def test_the_ledger_is_summed_by_hour_tenant_and_tier(
    alice: User,
    charlie: User,
    root: User,
    api: Api,
    make_job: Callable[..., Job],
    language: Tenant,
) -> None:
    hour = this_hour()
    kept, broken = make_job("kept"), make_job("broken")
    others = make_job("others", tenant=language, owner=charlie)
    for job, delivered in ((kept, 3600.0), (broken, 600.0), (others, 0.0)):
        for at in (hour, hour - timedelta(days=3)):
            book(job, at, delivered)

    rows = api(alice).get(f"{API}/promises/").json()

    assert [{key: row[key] for key in row if key != "hour"} for row in rows] == [
        {
            "tenant": "vision",
            "tier": "standard",
            "promise": 0.7,
            "delivered": 4200.0,
            "entitled": 7200.0,
            "jobs": 2,
            "broken": 1,
        }
    ]
    everything = api(root)
    assert len(everything.get(f"{API}/promises/?hours=100").json()) == 4
    assert len(everything.get(f"{API}/promises/?tenant=language").json()) == 1
    assert everything.get(f"{API}/promises/?tier=basic").json() == []
    own = api(alice).get(f"{API}/jobs/{broken.id}/promises/").json()
    assert [row["delivered"] for row in own] == [600.0]


def test_a_ledger_can_be_read_up_to_a_moment(
    alice: User, api: Api, make_job: Callable[..., Job]
) -> None:
    job, hour = make_job(), this_hour()
    for back in range(6):
        book(job, hour - timedelta(hours=back), 3600.0 - back)
    until = (hour - timedelta(hours=2)).isoformat().replace("+00:00", "Z")

    rows = api(alice).get(f"{API}/promises/?hours=1&until={until}").json()

    assert [row["delivered"] for row in rows] == [3597.0, 3596.0]
    own = api(alice).get(f"{API}/jobs/{job.id}/promises/?hours=1&until={until}").json()
    assert [row["delivered"] for row in own] == [3597.0]


def test_a_shortfall_tells_where_the_time_went(
    alice: User, charlie: User, api: Api, make_job: Callable[..., Job]
) -> None:
    hour = this_hour() - timedelta(hours=1)
    kept, short, basic = make_job("kept"), make_job("short"), make_job("basic")
    book(kept, hour, 3600.0 * 0.7)
    book(basic, hour, 0.0, promise=0.0)
    book(short, hour, 1000.0)
    begins = hour.timestamp() + 60
    Move.objects.create(
        job=short, kind="preempt", began_at=hour, stopped_at=begins, resumed_at=begins + 600
    )
    Move.objects.create(job=short, kind="migrate", began_at=hour, called_off="It ended first.")

    (row,) = api(alice).get(f"{API}/promises/shortfalls/").json()

    assert (row["job"], row["broken"], row["hours"]) == (short.id, 1, 1)
    assert row["missing_s"] == pytest.approx(2600)
    assert row["still_s"] == pytest.approx(600)
    assert row["waited_s"] == pytest.approx(2000)
    assert row["moves"] == {"preempted": 1}
    assert api(charlie).get(f"{API}/promises/shortfalls/").json() == []


@pytest.mark.parametrize("hours", ["x", "0", "-1", "nan", "1e9"])
def test_hours_that_are_none_are_refused(hours: str, alice: User, api: Api) -> None:
    assert api(alice).get(f"{API}/promises/?hours={hours}").status_code == 400


@pytest.mark.parametrize("until", ["x", "2026-02-30T00:00:00Z", "1026-01-01T00:00:00Z"])
def test_a_moment_that_is_none_is_refused(until: str, alice: User, api: Api) -> None:
    answer = api(alice).get(f"{API}/promises/", {"until": until})
    assert answer.status_code == 400
    assert "until" in answer.content.decode()
