"""Who may do what: each persona against each object, as one table."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from portal.models import AccessToken, Job, Membership, Node, Simulation, Tenant, Upload, User
from tests.portal.api.conftest import Api

PERSONAS = ("alice", "bob", "manager", "charlie", "root", "nobody")

TABLE: list[tuple[str, str, Any, tuple[int, ...]]] = [
    # What is asked                                 alice, bob, manager, charlie, root, nobody
    ("GET", "jobs/{job}/", None, (200, 200, 200, 404, 200, 401)),
    ("GET", "jobs/{job}/output/0/", None, (200, 200, 200, 404, 200, 401)),
    ("GET", "jobs/{job}/files/", None, (200, 200, 200, 404, 200, 401)),
    ("GET", "jobs/{job}/receipts/", None, (200, 200, 200, 404, 200, 401)),
    ("GET", "jobs/{job}/decisions/", None, (200, 200, 200, 404, 200, 401)),
    ("GET", "jobs/{job}/checkpoints/", None, (200, 200, 200, 404, 200, 401)),
    ("GET", "jobs/{job}/placements/", None, (200, 200, 200, 404, 200, 401)),
    ("GET", "jobs/{job}/use/", None, (200, 200, 200, 404, 200, 401)),
    ("POST", "jobs/{job}/pause/", {}, (202, 403, 202, 404, 202, 401)),
    ("POST", "jobs/{job}/cancel/", {}, (202, 403, 202, 404, 202, 401)),
    ("POST", "jobs/{job}/migrate/", {}, (409, 403, 409, 404, 409, 401)),
    ("POST", "jobs/{job}/checkpoint/", {}, (409, 403, 409, 404, 409, 401)),
    ("GET", "jobs/{job}/profile/", None, (200, 200, 200, 404, 200, 401)),
    ("POST", "jobs/{job}/profile/", {}, (409, 403, 409, 404, 409, 401)),
    ("POST", "jobs/{job}/clone/", {}, (201, 201, 201, 404, 201, 401)),
    ("GET", "jobs/{job}/promises/", None, (200, 200, 200, 404, 200, 401)),
    ("GET", "promises/", None, (200, 200, 200, 200, 200, 401)),
    ("GET", "policy/", None, (403, 403, 403, 403, 200, 401)),
    ("PUT", "policy/", {"policy": "fair"}, (403, 403, 403, 403, 200, 401)),
    ("GET", "nodes/node-a/", None, (200, 200, 200, 200, 200, 401)),
    ("POST", "nodes/node-a/cordon/", {}, (403, 403, 403, 403, 200, 401)),
    ("POST", "nodes/node-a/drain/", {}, (403, 403, 403, 403, 200, 401)),
    ("POST", "nodes/node-a/uncordon/", {}, (403, 403, 403, 403, 200, 401)),
    ("POST", "nodes/node-a/token/", {}, (403, 403, 403, 403, 200, 401)),
    ("POST", "nodes/", {"name": "node-z"}, (403, 403, 403, 403, 201, 401)),
    ("PATCH", "nodes/node-a/", {"rack": "r1"}, (403, 403, 403, 403, 200, 401)),
    ("DELETE", "nodes/node-a/", None, (403, 403, 403, 403, 204, 401)),
    ("GET", "tenants/vision/", None, (200, 200, 200, 404, 200, 401)),
    ("GET", "tenants/vision/members/", None, (200, 200, 200, 404, 200, 401)),
    ("PATCH", "tenants/vision/", {"weight": 2}, (403, 403, 403, 404, 200, 401)),
    ("PUT", "tenants/vision/quotas/any/", {"reserved": 9}, (403, 403, 403, 404, 200, 401)),
    ("DELETE", "tenants/vision/quotas/any/", None, (403, 403, 403, 404, 409, 401)),
    ("POST", "tenants/", {"slug": "speech"}, (403, 403, 403, 403, 201, 401)),
    ("DELETE", "tenants/vision/", None, (403, 403, 403, 404, 409, 401)),
    (
        "PUT",
        "tenants/vision/members/charlie/",
        {"role": "manager"},
        (403, 403, 200, 404, 200, 401),
    ),
    ("DELETE", "tenants/vision/members/bob/", None, (403, 403, 204, 404, 204, 401)),
    ("GET", "tiers/", None, (200, 200, 200, 200, 200, 401)),
    ("POST", "tiers/", {"slug": "gold"}, (403, 403, 403, 403, 201, 401)),
    ("PATCH", "tiers/basic/", {"rank": 1}, (403, 403, 403, 403, 200, 401)),
    ("DELETE", "tiers/premium/", None, (403, 403, 403, 403, 204, 401)),
    ("GET", "partitions/", None, (200, 200, 200, 200, 200, 401)),
    ("POST", "partitions/", {"slug": "east"}, (403, 403, 403, 403, 201, 401)),
    ("GET", "users/", None, (403, 403, 403, 403, 200, 401)),
    ("PATCH", "users/bob/", {"admin": True}, (403, 403, 403, 403, 200, 401)),
    ("GET", "audit/", None, (403, 403, 403, 403, 200, 401)),
    ("GET", "simulations/", None, (403, 403, 403, 403, 200, 401)),
    ("POST", "simulations/", {"days": 7}, (403, 403, 403, 403, 201, 401)),
    ("GET", "simulations/{simulation}/", None, (403, 403, 403, 403, 200, 401)),
    ("POST", "simulations/{simulation}/cancel/", {}, (403, 403, 403, 403, 200, 401)),
    ("DELETE", "simulations/{simulation}/", None, (403, 403, 403, 403, 204, 401)),
    ("GET", "me/", None, (200, 200, 200, 200, 200, 401)),
    ("GET", "fleet/", None, (200, 200, 200, 200, 200, 401)),
    ("DELETE", "tokens/{token}/", None, (204, 404, 404, 404, 404, 401)),
    ("DELETE", "uploads/{upload}/", None, (204, 404, 404, 404, 404, 401)),
]


@pytest.fixture
def people(
    alice: User,
    bob: User,
    charlie: User,
    root: User,
    vision: Tenant,
    make_user: Callable[..., User],
) -> dict[str, User | None]:
    manager = make_user("manager", vision)
    Membership.objects.filter(user=manager).update(role="manager")
    return {
        "alice": alice,
        "bob": bob,
        "manager": manager,
        "charlie": charlie,
        "root": root,
        "nobody": None,
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "statuses"), TABLE, ids=[f"{row[0]} {row[1]}" for row in TABLE]
)
def test_each_persona_may_do_what_the_table_says(
    method: str,
    path: str,
    body: Any,
    statuses: tuple[int, ...],
    people: dict[str, User | None],
    api: Api,
    job: Job,
    node: Node,
    alice: User,
) -> None:
    token = AccessToken.objects.create(user=alice, name="hers", prefix="tp_", digest="0" * 64)
    upload = Upload.objects.create(owner=alice, filename="a", size=1, sha256="0", file="none")
    done = Simulation.objects.create(owner=alice, title="more nodes", days=7, state="done")
    address = "/api/v1/" + path.format(
        job=job.id, token=token.id, upload=upload.id, simulation=done.id
    )
    told = "" if body is None else json.dumps(body)

    answers = []
    for name in PERSONAS:
        with transaction.atomic():
            client = api(people[name])
            answer = client.generic(method, address, told, content_type="application/json")
            answers.append(answer.status_code)
            # What one of them did must not be there for the next one.
            transaction.set_rollback(True)
        if answer.status_code >= 400:
            assert set(answer.json()) == {"id", "detail", "fields"}
            assert answer.json()["detail"]

    assert dict(zip(PERSONAS, answers, strict=True)) == dict(zip(PERSONAS, statuses, strict=True))
