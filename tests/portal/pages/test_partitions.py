"""Partitions: made of nodes by name and pattern, given to tenants, removed when nobody asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from portal.models import AuditEntry, Job, Node, Partition, Tenant, User
from tests.portal.api.conftest import make_node
from tests.portal.pages.conftest import Browser


@pytest.fixture
def fast(node: Node) -> Partition:
    """A partition of node-a that is open to everyone."""
    partition = Partition.objects.create(slug="fast", title="Fast links")
    partition.nodes.set([node])
    return partition


def test_an_admin_makes_a_partition_of_names_and_patterns(
    browser: Browser, node: Node, vision: Tenant, root: User
) -> None:
    for name, cluster in (("node-b", "c1"), ("node-c", "c2"), ("other", "c2")):
        Node.objects.filter(pk=make_node(name).pk).update(region="eu", cluster=cluster)
    told = {"slug": "fast", "nodes": "node-a\n\neu/c2/*", "tenants": ["vision"]}
    assert browser(root).post("/partitions/", told).status_code == 302
    made = Partition.objects.get(slug="fast")
    assert [n.name for n in made.nodes.order_by("name")] == ["node-a", "node-c", "other"]
    assert list(made.tenants.all()) == [vision]
    assert AuditEntry.objects.get().act == "partition created"


def test_a_line_that_names_no_node_is_refused(browser: Browser, node: Node, root: User) -> None:
    answer = browser(root).post("/partitions/", {"slug": "fast", "nodes": "node-a\nnode-z*"})
    assert answer.status_code == 422
    assert "Line 2: no node is like" in answer.content.decode()
    assert not Partition.objects.exists()


def test_a_partition_is_changed_in_its_form(
    browser: Browser, fast: Partition, node: Node, vision: Tenant, root: User
) -> None:
    page = browser(root).get("/partitions/fast/").content.decode()
    assert ">\nnode-a</textarea>" in page
    make_node("node-b")
    told = {"title": "Faster", "nodes": "node-*", "tenants": ["vision"]}
    browser(root).post("/partitions/fast/", told)
    fast.refresh_from_db()
    assert (fast.title, fast.nodes.count(), fast.tenants.count()) == ("Faster", 2, 1)


def test_a_partition_that_is_asked_for_stays(
    browser: Browser, fast: Partition, make_job: Callable[..., Job], root: User
) -> None:
    job = make_job(partition=fast)
    assert "1 live job" in browser(root).get("/partitions/fast/").content.decode()
    answer = browser(root).post("/partitions/fast/remove/")
    assert answer.status_code == 409
    assert "wait for them or cancel them" in answer.content.decode()
    Job.objects.filter(pk=job.pk).update(state="succeeded")
    browser(root).post("/partitions/fast/remove/")
    assert not Partition.objects.exists()
    assert Node.objects.count() == 1


def test_others_see_what_is_open_to_them_and_change_nothing(
    browser: Browser, fast: Partition, language: Tenant, alice: User, charlie: User, root: User
) -> None:
    assert "Fast links" in browser(alice).get("/partitions/").content.decode()
    assert browser(alice).get("/partitions/fast/").status_code == 403
    assert browser(alice).post("/partitions/", {"slug": "mine"}).status_code == 403
    assert browser(alice).post("/partitions/fast/remove/").status_code == 403
    fast.tenants.set([language])
    assert "Fast links" not in browser(alice).get("/partitions/").content.decode()
    assert "Language" in browser(charlie).get("/partitions/").content.decode()
    assert browser(alice).get("/partitions/fast/").status_code == 404
