"""How many queries each endpoint takes: as many for many rows as for few."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.models import Checkpoint, Decision, Job, Move, User
from tests.portal.api.conftest import Api, make_node, place

COUNTS = Path(__file__).with_name("query_counts.json")
ADDRESSES = [
    *("jobs/", "jobs/{job}/", "jobs/{job}/receipts/", "jobs/{job}/decisions/"),
    *("jobs/{job}/checkpoints/", "jobs/{job}/placements/", "jobs/{job}/use/"),
    "jobs/{job}/output/0/",
    *("jobs/{job}/files/", "nodes/", "nodes/node-0/", "tenants/", "tenants/vision/"),
    *("tenants/vision/members/", "tiers/", "partitions/", "tokens/", "uploads/", "me/"),
    *("fleet/", "fleet/history/", "users/", "audit/", "simulations/"),
]


@pytest.fixture
def job(make_job: Callable[..., Job], alice: User) -> Job:
    """A fleet with three nodes, each with a job that has a history; the last job."""
    made = make_job()
    for number in range(3):
        made = make_job(f"job {number}")
        place(made, make_node(f"node-{number}"), state="ended")
        place(made, made.placements.get().replicas.get().node)
        for _ in range(2):
            Move.objects.create(job=made, kind="migrate", began_at=timezone.now(), asked_by=alice)
            Decision.objects.create(job=made, at=timezone.now(), kind="hold", reason="full")
        Checkpoint.objects.create(job=made, number=1, began_at=timezone.now())
    return made


def test_the_number_of_queries_is_as_agreed(job: Job, root: User, api: Api) -> None:
    client = api(root)
    client.get("/api/v1/me/")  # notes the token's use, once a minute
    counts = {}
    for address in ADDRESSES:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            answer = client.get("/api/v1/" + address.format(job=job.id))
        assert answer.status_code == 200, address
        counts[address] = len(queries)
    if os.environ.get("UPDATE_GOLDEN"):
        COUNTS.write_text(json.dumps(counts, indent=1) + "\n")
    agreed = json.loads(COUNTS.read_text())
    assert counts == agreed, "If more are meant, run the test with UPDATE_GOLDEN=1."


@pytest.mark.parametrize("address", ["jobs/", "nodes/", "jobs/{job}/placements/"])
def test_more_rows_take_no_more_queries(
    address: str, job: Job, root: User, api: Api, make_job: Callable[..., Job]
) -> None:
    client = api(root)
    client.get("/api/v1/me/")

    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get("/api/v1/" + address.format(job=job.id))
        return len(queries)

    before = count()
    for number in range(3):
        node = make_node(f"more-{number}")
        place(make_job(), node)
        place(job, node, state="ended")
    assert count() == before
