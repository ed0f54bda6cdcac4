"""What each page and endpoint costs in a large fleet: ``python -m tests.benchmarks.pages --json``.

On the fleet of `tests.benchmarks.observing`, every page and every endpoint of the API that can be
looked at is fetched by an admin and by a member of one tenant, three times after a first one.
A line each: ``wall_s`` and ``cpu_s`` (the portal's own) are medians, ``queries`` and ``bytes`` the
last's.
No agent tells anything there, so figures of use are missing.
"""

from __future__ import annotations

import json
import logging
import statistics
import time
from collections.abc import Iterator
from typing import Any

from tests.benchmarks.observing import round_off, run

TIMES = 3
PLACE = "region={region}&cluster={cluster}"
PAGES = (
    "/", f"/?{PLACE}", f"/?{PLACE}&rack={{rack}}", "/fleet/floor/", "/fleet/survey/",
    f"/fleet/survey/?{PLACE}", "/fleet/history/", "/jobs/", "/jobs/?state=waiting",
    "/jobs/?state=live&sort=devices", "/jobs/?sort=-moves&page=500", "/jobs/?q=j12",
    "/jobs/{running}/", "/jobs/{waiting}/", "/jobs/new/", "POST /jobs/check/", "/nodes/",
    "/nodes/list/", "/nodes/list/?page=200", "/tenants/", "/tenants/{tenant}/", "/promises/",
    "/promises/?hours=168", "/promises/?hours=2160", "/promises/ledger.csv",
    "/promises/jobs.csv", "/what-if/", "/partitions/", "/accounts/", "/audit/", "/tokens/",
)  # fmt: skip
ENDPOINTS = (
    "jobs/", "jobs/?page_size=500", "jobs/?state=waiting", "jobs/{running}/", "jobs/{running}/use/",
    "jobs/{running}/receipts/", "jobs/{running}/decisions/", "jobs/{running}/placements/",
    "jobs/{running}/promises/", "nodes/", "nodes/?page_size=500", "nodes/{node}/", "tenants/",
    "tenants/{tenant}/", "tiers/", "partitions/", "promises/", "promises/shortfalls/", "fleet/",
    "fleet/history/", "users/", "audit/", "simulations/", "me/", "policy/", "POST jobs/check/",
    "POST jobs/",
)  # fmt: skip


def main() -> None:
    run("pages", pages, settled=True, about=__doc__ or "")


def pages(options: Any) -> dict[str, Any]:
    """Print a line for each page; the sums of them all are the answer."""

    from django.test import Client

    from portal.models import Membership, Tenant, User

    logging.disable()
    tenant = Tenant.objects.order_by("slug").first()
    assert tenant is not None
    root, _ = User.objects.get_or_create(username="root", defaults={"is_staff": True})
    member, _ = User.objects.get_or_create(username="member")
    Membership.objects.get_or_create(user=member, tenant=tenant)
    names, told, slow = known(tenant), 0, []
    for user in (root, member):
        client = Client(SERVER_NAME="localhost", headers={"accept-encoding": "gzip"})
        client.force_login(user)
        for address in (*PAGES, *(api(endpoint) for endpoint in ENDPOINTS)):
            figures = fetch(client, address.format(**names), tenant.slug)
            told += 1
            if figures["cpu_s"] > 0.3 or figures["bytes"] > 2 * 2**20:
                slow.append(f"{user.username} {address}")
            print(json.dumps({"page": address, "as": user.username} | figures), flush=True)
    return {"benchmark": "pages", "pages": told, "slow": slow}


def api(endpoint: str) -> str:
    method, _, path = endpoint.rpartition(" ")
    return f"{method} /api/v1/{path}".lstrip()


def known(tenant: Any) -> dict[str, Any]:
    """What addresses name: things that are there, and that a member may see."""
    from portal.models import Job, Node

    node = Node.objects.order_by("id")[100]
    jobs = Job.objects.filter(tenant=tenant).order_by("id")
    running, waiting = (jobs.filter(state=state).first() for state in ("running", "waiting"))
    assert running is not None and waiting is not None
    return {
        "running": running.id, "waiting": waiting.id, "tenant": tenant.slug, "node": node.name,
        "region": node.region, "cluster": node.cluster, "rack": node.rack,
    }  # fmt: skip


def fetch(client: Any, address: str, tenant: str) -> dict[str, Any]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    method, _, path = address.rpartition(" ")
    request = {"tenant": tenant, "tier": "basic", "command": "train"}
    walls, works = [], []
    for _ in range(TIMES + 1):
        with CaptureQueriesContext(connection) as queries:
            began, worked = time.perf_counter(), time.process_time()
            if method:
                kind = "application/json" if "/api/" in path else None
                answer = client.post(path, request, **({"content_type": kind} if kind else {}))
            else:
                answer = client.get(path)
            size = sum(map(len, content(answer)))
            walls.append(time.perf_counter() - began)
            works.append(time.process_time() - worked)
    return {
        "status": answer.status_code,
        "wall_s": round_off(statistics.median(walls[1:])),
        "cpu_s": round_off(statistics.median(works[1:])),
        "queries": len(queries),
        "bytes": size,
    }


def content(answer: Any) -> Iterator[bytes]:
    if answer.streaming:
        yield from answer
    else:
        yield answer.content


if __name__ == "__main__":
    main()
