"""The nodes: abilities with reasons, draining with a preview, tokens shown once."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.utils import timezone

from portal.actions.nodes import find_node
from portal.models import Job, Node, User
from portal.views import nodes
from tests.portal.api.conftest import make_node, place
from tests.portal.pages.conftest import Browser

PANEL = {"HX-Request": "true"}


def test_what_a_node_cannot_do_has_its_reason(browser: Browser, node: Node, alice: User) -> None:
    node.abilities["migrate"] = {"able": False, "reason": "criu is older than 4.2"}
    node.save()
    page = browser(alice).get("/nodes/").content.decode()
    assert "criu is older than 4.2" in page
    assert "/drain/" not in page


def test_a_lost_node_says_what_became_of_its_jobs(
    browser: Browser, node: Node, alice: User
) -> None:
    assert "Given up" not in browser(alice).get("/nodes/").content.decode()
    Node.objects.update(lost_at=timezone.now())
    page = browser(alice).get("/nodes/").content.decode()
    assert "Its jobs went back to their last checkpoints and go on elsewhere" in page


def test_a_drain_says_which_jobs_move(
    browser: Browser, make_job: Callable[..., Job], node: Node, root: User
) -> None:
    place(make_job("gentle", state="running"), node)
    place(make_job("harsh", state="running", remedy="requeue"), node)
    asked = browser(root).get("/nodes/node-a/drain/", headers=PANEL).content.decode()
    assert re.search(r"1 job</strong> will move and go on at the same step.*gentle", asked, re.S)
    assert re.search(r"1 job</strong> will start again elsewhere.*harsh", asked, re.S)
    node.refresh_from_db()
    assert not node.draining


def test_a_node_is_drained_with_a_note_and_opened_again(
    browser: Browser, node: Node, root: User
) -> None:
    answer = browser(root).post("/nodes/node-a/drain/", {"note": "new disks"}, headers=PANEL)
    assert answer["HX-Redirect"] == "/nodes/"
    node.refresh_from_db()
    assert (node.draining, node.note) == (True, "new disks")
    browser(root).post("/nodes/node-a/open/")
    node.refresh_from_db()
    assert (node.draining, node.cordoned, node.note) == (False, False, "")


def test_a_new_node_shows_its_token_once(browser: Browser, root: User) -> None:
    client = browser(root)
    page = client.post("/nodes/add/", {"name": "node-z", "rack": "r1"}).content.decode()
    secret = re.search(r'<code id="secret">([^<]+)</code>', page)
    assert secret
    found = find_node(secret[1])
    assert found is not None
    assert (found.name, found.rack) == ("node-z", "r1")
    assert secret[1] not in client.get("/nodes/").content.decode()
    assert "Not heard of yet" in client.get("/nodes/").content.decode()


def test_a_name_that_is_taken_is_refused_at_its_field(
    browser: Browser, node: Node, root: User
) -> None:
    answer = browser(root).post("/nodes/add/", {"name": "node-a"})
    assert answer.status_code == 422
    assert answer.context["form"].errors["name"]


def test_a_new_token_ends_the_old_one(browser: Browser, root: User) -> None:
    client = browser(root)
    find = r'<code id="secret">([^<]+)</code>'
    pages = [client.post("/nodes/add/", {"name": "node-z"}), client.post("/nodes/node-z/token/")]
    old, new = (re.findall(find, page.content.decode())[0] for page in pages)
    assert find_node(old) is None
    assert find_node(new) is not None


def test_a_node_that_holds_jobs_is_not_removed(
    browser: Browser, make_job: Callable[..., Job], node: Node, root: User
) -> None:
    place(make_job(state="running"), node)
    answer = browser(root).post("/nodes/node-a/remove/", headers=PANEL)
    assert "drain it first" in answer.content.decode()
    assert Node.objects.filter(name="node-a").exists()


def test_nodes_are_found_by_name_place_and_condition(
    browser: Browser, node: Node, alice: User
) -> None:
    other = make_node("node-b")
    Node.objects.filter(pk=other.pk).update(rack="r-17", draining=True)
    other.devices.update(sick="memory errors")
    client = browser(alice)

    def shown(query: str) -> list[str]:
        page = client.get(f"/nodes/list/?{query}").content.decode()
        return [name for name in ("node-a", "node-b") if f'id="{name}"' in page]

    assert shown("") == ["node-a", "node-b"]
    assert shown("q=R-17") == ["node-b"]
    assert shown("condition=draining") == shown("condition=sick") == ["node-b"]
    assert shown("condition=well") == ["node-a"]
    assert shown("condition=lost") == []
    assert "No node is like this" in client.get("/nodes/?condition=lost").content.decode()


def test_a_list_of_many_nodes_comes_in_pages(
    browser: Browser, node: Node, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "CARDS", 1)
    make_node("node-b")
    first = browser(alice).get("/nodes/").content.decode()
    assert "node-a" in first
    assert 'id="node-b"' not in first
    assert 'id="node-b"' in browser(alice).get("/nodes/?page=2").content.decode()
