"""No page asks the database more often because there is more to show."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.actions.audit import record
from portal.models import Checkpoint, Job, Move, Node, Quota, Tenant, User
from tests.portal.api.conftest import make_node, place
from tests.portal.api.test_promises import book, this_hour
from tests.portal.pages.conftest import Browser

PAGES = {
    "/": 12,
    "/fleet/floor/": 8,
    "/fleet/survey/": 7,
    "/fleet/history/": 4,
    "/jobs/": 10,
    "/jobs/new/": 9,
    "/nodes/": 9,
    "/tenants/": 10,
    "/promises/": 10,
    "/tokens/": 3,
    "/audit/": 4,
    "/partitions/": 6,
}


def count(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as asked:
        assert client.get(address).status_code == 200
    return len(asked)


def grow(job: Job, node: Node, name: str) -> None:
    """Add a moved job on a node of its own, to a tenant of its own."""
    other = make_node(f"node-{name}")
    tenant = Tenant.objects.create(slug=name, title=name, parent=job.tenant)
    Quota.objects.create(tenant=tenant, reserved=1)
    Quota.objects.create(tenant=tenant, reserved=1, device_kind="cpu")
    more = Job.objects.create(
        name=name, tenant=tenant, owner=job.owner, tier=job.tier, submitted_at=timezone.now()
    )
    place(more, other)
    add_history(more, job)
    book(more, this_hour(), 0.0)
    record(job.owner, "quota set", name, {"reserved": 0}, {"reserved": 1})


def add_history(job: Job, other: Job) -> None:
    number = job.checkpoints.count() + 1
    at = datetime.now(UTC)
    Move.objects.create(job=job, kind="migrate", beneficiary=other, began_at=at)
    Checkpoint.objects.create(job=job, number=number, began_at=at)


@pytest.mark.parametrize("address", PAGES)
def test_a_page_asks_a_fixed_number_of_times(
    browser: Browser, job: Job, node: Node, root: User, address: str
) -> None:
    client = browser(root)
    grow(job, node, "one")
    client.get(address)
    first = count(client, address)
    for name in ("two", "three", "four"):
        grow(job, node, name)
    assert count(client, address) == first
    assert first <= PAGES[address]


def test_a_job_asks_a_fixed_number_of_times(
    browser: Browser, make_job: Callable[..., Job], node: Node, alice: User
) -> None:
    job = make_job(replicas=2)
    place(job, node, state="ended")
    add_history(job, job)
    client = browser(alice)
    client.get(f"/jobs/{job.id}/")
    first = count(client, f"/jobs/{job.id}/")
    for _ in range(3):
        place(job, node, state="ended")
        add_history(job, make_job())
    assert count(client, f"/jobs/{job.id}/") == first
    assert first <= 13
