"""What if, played out, over the API: asked with days or an upload, read, called off, removed."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from portal.models import Node, Simulation, Tenant, Upload, User
from tests.portal.api.conftest import Api

BASE = "/api/v1/simulations/"
OWN = b"submit_time,duration,gpus\n0,100,1\n"


@pytest.fixture(autouse=True)
def nobody_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.actions.simulations.send_for_worker", lambda: None)


def test_days_are_asked_with_all_that_can_be_changed(
    api: Api, root: User, vision: Tenant, node: Node
) -> None:
    question: dict[str, Any] = {
        "days": 14,
        "policy": "fifo",
        "quota": {"tenant": "vision", "reserved": 4, "borrow": None},
        "tiers": {"basic": {"promise": 0.4}},
        "more_nodes": 2,
        "like_node": "node-a",
        "pricing": "off",
    }
    answer = api(root).post(BASE, question, format="json")
    assert answer.status_code == 201, answer.json()
    asked = Simulation.objects.get()
    assert asked.quota == {
        "tenant": "vision", "device_kind": "", "reserved": 4, "borrow": None, "lend": True,
    }  # fmt: skip
    assert (asked.days, asked.tiers, asked.pricing) == (14, {"basic": {"promise": 0.4}}, "off")
    shown = answer.json()
    assert (shown["state"], shown["owner"], shown["share"]) == ("queued", "root", 0.0)
    assert api(root).get(BASE).json()["results"][0]["title"] == asked.title


def test_a_trace_comes_from_an_upload_of_ones_own(api: Api, root: User, alice: User) -> None:
    client = api(root)
    file = SimpleUploadedFile("mine.csv", OWN)
    upload = client.post("/api/v1/uploads/", {"file": file}, format="multipart").json()["id"]
    answer = client.post(BASE, {"upload": upload, "strict": True}, format="json")
    assert answer.status_code == 201, answer.json()
    asked = Simulation.objects.get()
    assert (asked.days, asked.filename, asked.trace_size) == (None, "mine.csv", len(OWN))
    with asked.trace.open() as kept:
        assert kept.read() == OWN
    assert asked.strict
    hers = Upload.objects.create(owner=alice, filename="a", size=1, sha256="0", file="none")
    assert client.post(BASE, {"upload": hers.id}, format="json").status_code == 404


def test_what_is_wrong_names_its_field(api: Api, root: User, node: Node) -> None:
    for question, field in (
        ({}, "trace"),
        ({"days": 0}, "days"),
        ({"days": 7, "policy": "best"}, "policy"),
        ({"days": 7, "tiers": {"gold": {"rank": 1}}}, "tiers.gold"),
        ({"days": 7, "quota": {"tenant": "nobody", "reserved": 1}}, "tenant"),
    ):
        answer = api(root).post(BASE, question, format="json")
        assert answer.status_code == 400, question
        assert field in answer.json()["fields"], answer.json()


def test_results_are_numbers(api: Api, root: User) -> None:
    done = Simulation.objects.create(
        owner=root,
        title="more nodes",
        days=7,
        state="done",
        share=1.0,
        runs=["as it is", "changed"],
        measures=[{"finished": 10}, {"finished": 12}],
        costs={"checkpoint_s": 1.0, "moves": 3},
    )
    shown = api(root).get(f"{BASE}{done.id}/").json()
    assert [run["measures"]["finished"] for run in shown["results"]] == [10, 12]
    assert shown["costs"]["moves"] == 3
    assert "results" not in api(root).get(BASE).json()["results"][0]


def test_it_is_called_off_and_removed(api: Api, root: User) -> None:
    asked = Simulation.objects.create(owner=root, title="as it is", days=7, state="running")
    client = api(root)
    refused = client.delete(f"{BASE}{asked.id}/")
    assert (refused.status_code, refused.json()["id"]) == (409, "not-ended")
    assert client.post(f"{BASE}{asked.id}/cancel/").json()["state"] == "cancelled"
    assert client.delete(f"{BASE}{asked.id}/").status_code == 204
    assert client.get(f"{BASE}{asked.id}/").status_code == 404
