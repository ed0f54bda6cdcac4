"""The policy and the ledger of promises over the API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from portal.models import AuditEntry, Job, Promise, Settings, Tenant, Tier, User
from tests.portal.api.conftest import Api

API = "/api/v1"


def test_an_admin_chooses_a_policy(root: User, api: Api) -> None:
    client = api(root)
    before = client.get(f"{API}/policy/").json()
    told = {"policy": "eager", "changes": {"cooling_s": 5, "migration": False}}

    after = client.put(f"{API}/policy/", told, format="json").json()

    assert before["policy"] == ""
    assert before["in_force"]["name"] == "default"
    assert after["in_force"]["name"] == "eager"
    assert after["in_force"]["cooling_s"] == 5
    assert after["in_force"]["migration"] is False
    assert Settings.objects.get(pk=1).changes == told["changes"]
    assert AuditEntry.objects.get().act == "policy set"


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"policy": "pool-fifo"}, "policy"),
        ({"policy": "none"}, "policy"),
        ({"policy": "", "changes": {"pool": True}}, "changes.pool"),
        ({"policy": "", "changes": {"name": "x"}}, "changes.name"),
        ({"policy": "", "changes": {"migration": 1}}, "changes.migration"),
        ({"policy": "", "changes": {"cooling_s": "long"}}, "changes.cooling_s"),
        ({"policy": "", "changes": {"cooling_s": -1}}, "changes.cooling_s"),
        ({"policy": "", "changes": {"cooling_s": True}}, "changes.cooling_s"),
        ({"policy": "", "changes": {"moves_per_hour": 1.5}}, "changes.moves_per_hour"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    told: dict[str, Any], field: str, root: User, api: Api
) -> None:
    answer = api(root).put(f"{API}/policy/", told, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == [field]


def test_the_ledger_is_summed_by_hour_tenant_and_tier(
    alice: User,
    charlie: User,
    root: User,
    api: Api,
    make_job: Callable[..., Job],
    tiers: dict[str, Tier],
    language: Tenant,
) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    kept, broken = make_job("kept"), make_job("broken")
    others = make_job("others", tenant=language, owner=charlie)
    for job, delivered in ((kept, 3600.0), (broken, 600.0), (others, 0.0)):
        for at in (hour, hour - timedelta(days=3)):
            Promise.objects.create(
                job=job,
                hour=at,
                tenant=job.tenant,
                tier=tiers["standard"],
                delivered=delivered,
                entitled=3600.0,
                promise=0.7,
            )

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


@pytest.mark.parametrize("hours", ["x", "0", "-1", "nan", "1e9"])
def test_hours_that_are_none_are_refused(hours: str, alice: User, api: Api) -> None:
    assert api(alice).get(f"{API}/promises/?hours={hours}").status_code == 400
