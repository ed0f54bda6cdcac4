"""Tenants, quotas, members, tiers and partitions over the API."""

from __future__ import annotations

from typing import Any

import pytest

from portal.models import AuditEntry, Job, Membership, Node, Partition, Tenant, Tier, User
from tests.portal.api.conftest import Api, place

API = "/api/v1"


def test_a_tenant_tells_ones_role_and_what_it_holds(
    alice: User, root: User, api: Api, job: Job, node: Node
) -> None:
    place(job, node)
    own = api(alice).get(f"{API}/tenants/").json()["results"]
    assert [(t["slug"], t["role"], t["devices_held"]) for t in own] == [("vision", "researcher", 1)]
    assert own[0]["quotas"] == [{"device_kind": "", "reserved": 8, "borrow": 0, "lend": True}]
    assert api(root).get(f"{API}/tenants/vision/").json()["role"] is None


def test_an_admin_sets_a_quota_and_the_trail_tells(root: User, api: Api, vision: Tenant) -> None:
    client = api(root)
    told = {"reserved": 4, "borrow": None, "lend": False}

    answer = client.put(f"{API}/tenants/vision/quotas/any/", told, format="json")
    client.put(f"{API}/tenants/vision/quotas/H100/", {"reserved": 2}, format="json")

    assert answer.json() == {"device_kind": "", **told}
    kinds = [
        quota["device_kind"] for quota in client.get(f"{API}/tenants/vision/").json()["quotas"]
    ]
    assert kinds == ["", "H100"]
    entry = AuditEntry.objects.order_by("id").first()
    assert entry is not None
    assert (entry.act, entry.before) == ("quota set", {"reserved": 8, "borrow": 0, "lend": True})
    assert entry.after == told
    listed = client.get(f"{API}/audit/").json()["results"]
    assert [row["actor"] for row in listed] == ["root", "root"]


@pytest.mark.parametrize(
    ("field", "value"), [("reserved", -1), ("reserved", None), ("borrow", "x"), ("lend", "so")]
)
def test_a_bad_quota_is_refused(
    field: str, value: Any, root: User, api: Api, vision: Tenant
) -> None:
    told = {"reserved": 4, field: value}
    answer = api(root).put(f"{API}/tenants/vision/quotas/any/", told, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == [field]


def test_the_last_quota_stays(root: User, api: Api, vision: Tenant) -> None:
    client = api(root)
    client.put(f"{API}/tenants/vision/quotas/cpu/", {"reserved": 2}, format="json")
    assert client.delete(f"{API}/tenants/vision/quotas/any/").status_code == 204
    assert client.delete(f"{API}/tenants/vision/quotas/any/").status_code == 404
    assert client.delete(f"{API}/tenants/vision/quotas/cpu/").json()["id"] == "only-quota"


def test_a_tenant_is_made_without_quota_and_removed(root: User, api: Api, vision: Tenant) -> None:
    client = api(root)
    made = client.post(f"{API}/tenants/", {"slug": "cnn", "parent": "vision"}, format="json").json()
    assert made["parent"] == "vision"
    assert made["quotas"] == [{"device_kind": "", "reserved": 0, "borrow": 0, "lend": True}]
    loop = client.patch(f"{API}/tenants/vision/", {"parent": "cnn"}, format="json")
    assert list(loop.json()["fields"]) == ["parent"]
    again = client.post(f"{API}/tenants/", {"slug": "cnn"}, format="json")
    assert again.json()["id"] == "taken"
    assert client.delete(f"{API}/tenants/vision/").status_code == 409
    assert client.delete(f"{API}/tenants/cnn/").status_code == 204
    assert not Tenant.objects.filter(slug="cnn").exists()


def test_a_manager_looks_after_the_members(alice: User, charlie: User, api: Api) -> None:
    Membership.objects.filter(user=alice).update(role="manager")
    client = api(alice)
    address = f"{API}/tenants/vision/members"

    client.put(f"{address}/charlie/", {"role": "researcher"}, format="json")
    unknown = client.put(f"{address}/nobody/", {"role": "researcher"}, format="json")
    bad = client.put(f"{address}/charlie/", {"role": "king"}, format="json")

    rows = client.get(f"{address}/").json()
    assert rows == [
        {"username": "alice", "role": "manager"},
        {"username": "charlie", "role": "researcher"},
    ]
    assert list(unknown.json()["fields"]) == ["username"]
    assert list(bad.json()["fields"]) == ["role"]
    assert api(charlie).get(f"{API}/tenants/vision/").status_code == 200
    assert client.delete(f"{address}/charlie/").status_code == 204
    assert client.delete(f"{address}/charlie/").status_code == 404
    assert api(charlie).get(f"{API}/tenants/vision/").status_code == 404


def test_a_tier_is_changed_within_bounds(root: User, api: Api, tiers: dict[str, Tier]) -> None:
    client = api(root)
    changed = client.patch(f"{API}/tiers/basic/", {"promise": 0.1}, format="json")
    assert changed.json()["promise"] == 0.1
    for told in ({"promise": 1.1}, {"rank": 10**6}, {"checkpoint_every_s": 1}):
        answer = client.patch(f"{API}/tiers/basic/", told, format="json")
        assert list(answer.json()["fields"]) == list(told)


def test_a_tier_that_jobs_name_stays(root: User, api: Api, job: Job) -> None:
    answer = api(root).delete(f"{API}/tiers/basic/")
    assert (answer.status_code, answer.json()["id"]) == (409, "in-use")


def test_a_partition_is_seen_by_those_it_is_given_to(
    root: User, alice: User, charlie: User, api: Api, node: Node, language: Tenant, vision: Tenant
) -> None:
    client = api(root)
    told = {"slug": "east", "nodes": ["node-a"], "tenants": ["vision", "language"]}
    assert client.post(f"{API}/partitions/", told, format="json").status_code == 201
    shown = api(alice).get(f"{API}/partitions/east/").json()
    assert shown == {"slug": "east", "title": "east", "nodes": ["node-a"], "tenants": ["vision"]}

    client.patch(f"{API}/partitions/east/", {"tenants": ["language"]}, format="json")
    assert api(alice).get(f"{API}/partitions/east/").status_code == 404
    assert api(charlie).get(f"{API}/partitions/").json()["count"] == 1

    client.patch(f"{API}/partitions/east/", {"tenants": []}, format="json")
    assert api(alice).get(f"{API}/partitions/").json()["count"] == 1


def test_a_partition_of_unknown_nodes_is_refused(root: User, api: Api) -> None:
    told = {"slug": "east", "nodes": ["nowhere"]}
    answer = api(root).post(f"{API}/partitions/", told, format="json")
    assert list(answer.json()["fields"]) == ["nodes"]


def test_a_partition_that_live_jobs_ask_for_stays(
    root: User, api: Api, job: Job, node: Node
) -> None:
    partition = Partition.objects.create(slug="east", title="East")
    Job.objects.update(partition=partition)
    client = api(root)
    assert client.delete(f"{API}/partitions/east/").status_code == 409
    Job.objects.update(state="succeeded")
    assert client.delete(f"{API}/partitions/east/").status_code == 204
