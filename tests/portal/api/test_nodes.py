"""Nodes over the API."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from portal import telemetry
from portal.actions.nodes import find_node
from portal.models import AuditEntry, FleetSample, Job, Node, Tenant, User
from tests.portal.api.conftest import Api, make_node, place

NODES = "/api/v1/nodes/"


def test_everyone_sees_the_fleet_but_not_others_jobs(
    alice: User, charlie: User, api: Api, node: Node, job: Job
) -> None:
    place(job, node)

    own, others = (api(user).get(NODES).json()["results"][0] for user in (alice, charlie))

    assert [device["taken"] for device in others["devices"]] == [True, False]
    assert [device["jobs"] for device in others["devices"]] == [[], []]
    assert own["devices"][0]["jobs"] == [job.id]
    assert own["abilities"]["migrate"] == {"able": True, "reason": ""}


def test_devices_tell_their_last_second(
    alice: User, api: Api, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = {"node-a": {"devices": {"cpu1": {"utilisation": 0.5, "memory": 7, "power": 0.0}}}}
    monkeypatch.setattr("portal.api.nodes.latest", lambda names: use)

    devices = api(alice).get(f"{NODES}node-a/").json()["devices"]

    assert [device["utilisation"] for device in devices] == [None, 0.5]
    assert devices[1]["memory_used"] == 7


def test_without_a_broker_the_fleet_is_still_shown(alice: User, api: Api, node: Node) -> None:
    assert telemetry.latest(["node-a"]) == {}
    assert api(alice).get(NODES).status_code == 200


def test_an_admin_takes_a_node_out_and_back(root: User, api: Api, node: Node) -> None:
    client = api(root)
    states = []
    for verb in ("cordon", "drain", "uncordon"):
        answer = client.post(f"{NODES}node-a/{verb}/", {"note": "disk"}, format="json").json()
        states.append((answer["state"], answer["note"]))
    assert states == [("cordoned", "disk"), ("draining", "disk"), ("ready", "")]
    acts = AuditEntry.objects.order_by("id").values_list("act", "subject")
    assert list(acts) == [
        ("node cordoned", "node node-a"),
        ("node draining", "node node-a"),
        ("node opened", "node node-a"),
    ]


def test_a_node_is_enrolled_with_a_token_of_its_own(root: User, api: Api) -> None:
    client = api(root)
    made = client.post(NODES, {"name": "node-z", "rack": "r1"}, format="json").json()
    renewed = client.post(f"{NODES}node-z/token/").json()

    assert find_node(made["token"]) is None
    found = find_node(renewed["token"])
    assert found is not None
    assert (found.name, found.rack) == ("node-z", "r1")
    assert client.get(f"{NODES}node-z/").json()["state"] == "unheard"


@pytest.mark.parametrize("name", ["", "Node", "a b", "-a", "a" * 64, "../x"])
def test_a_bad_name_is_refused(name: str, root: User, api: Api) -> None:
    answer = api(root).post(NODES, {"name": name}, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["name"]


def test_a_name_is_taken_once(root: User, api: Api, node: Node) -> None:
    answer = api(root).post(NODES, {"name": "node-a"}, format="json")
    assert (answer.status_code, answer.json()["id"]) == (400, "taken")


def test_a_node_in_use_stays(root: User, api: Api, node: Node, job: Job) -> None:
    place(job, node)
    answer = api(root).delete(f"{NODES}node-a/")
    assert (answer.status_code, answer.json()["id"]) == (409, "node-in-use")


def test_the_summary_counts(
    alice: User,
    charlie: User,
    api: Api,
    node: Node,
    job: Job,
    make_job: Callable[..., Job],
    language: Tenant,
) -> None:
    place(job, node)
    make_node("node-b")
    Node.objects.filter(name="node-b").update(draining=True)
    make_job("other", tenant=language, owner=charlie)

    shown = api(alice).get("/api/v1/fleet/").json()

    assert shown["nodes"] == {"ready": 1, "draining": 1}
    assert shown["kinds"] == [
        {"kind": "cpu", "devices": 4, "taken": 1, "sick": 0, "utilisation": None}
    ]
    assert shown["jobs"]["waiting"] == 1


def test_the_history_names_only_ones_own_tenants(alice: User, api: Api) -> None:
    from django.utils import timezone

    FleetSample.objects.create(
        at=timezone.now(), devices=4, allocated=3, tenants={"vision": 1, "language": 2}
    )
    client = api(alice)
    rows = client.get("/api/v1/fleet/history/").json()
    assert [row["tenants"] for row in rows] == [{"vision": 1}]
    for hours in ("x", "0", "-1", "1e9", "nan"):
        assert client.get(f"/api/v1/fleet/history/?hours={hours}").status_code == 400
