"""Each page for each kind of visitor: what they see, and what they must not."""

from __future__ import annotations

from django.test import Client

from portal.models import Job, Node, User
from tests.portal.pages.conftest import Browser

OPEN = ("/", "/fleet/floor/", "/fleet/survey/", "/fleet/history/", "/jobs/", "/jobs/new/",
        "/nodes/", "/nodes/list/", "/partitions/", "/preferences/password/",
        "/tenants/", "/promises/", "/promises/ledger.csv", "/promises/jobs.csv", "/tokens/",
        "/preferences/")  # fmt: skip


def test_pages_send_strangers_to_log_in(browser: Browser) -> None:
    for address in (*OPEN, "/jobs/1/", "/audit/"):
        answer = browser(None).get(address)
        assert answer.status_code == 302, address
        assert answer["Location"].startswith("/login/?next="), address


def test_a_panel_sends_the_whole_page_to_log_in(browser: Browser) -> None:
    answer = browser(None).get("/fleet/floor/", headers={"HX-Request": "true"})
    assert answer["HX-Redirect"].startswith("/login/")


def test_everyone_who_is_signed_in_sees_the_open_pages(
    browser: Browser, node: Node, job: Job, alice: User, charlie: User, root: User
) -> None:
    for user in (alice, charlie, root):
        for address in OPEN:
            assert browser(user).get(address).status_code == 200, (user.username, address)


def job_pages(job: Job) -> list[str]:
    base = f"/jobs/{job.id}/"
    panels = [f"panels/{name}/" for name in ("summary", "receipts", "checkpoints", "use")]
    return [base + rest for rest in ("", "output/0/", "output/0/download/", "files/", *panels)]


def test_a_job_is_seen_by_its_tenant_and_by_admins_only(
    browser: Browser, job: Job, alice: User, bob: User, charlie: User, root: User
) -> None:
    for address in job_pages(job):
        for user in (alice, bob, root):
            assert browser(user).get(address).status_code == 200, (user.username, address)
        assert browser(charlie).get(address).status_code == 404, address
    assert job.name not in browser(charlie).get("/jobs/").content.decode()


def test_secrets_are_never_shown(browser: Browser, job: Job, alice: User, root: User) -> None:
    for user in (alice, root):
        page = browser(user).get(f"/jobs/{job.id}/").content.decode()
        assert "TOKEN" in page
        assert "hush" not in page


def test_only_the_owner_a_manager_or_an_admin_may_steer(
    browser: Browser, job: Job, alice: User, bob: User, charlie: User, root: User
) -> None:
    act = f"/jobs/{job.id}/do/cancel/"
    assert browser(bob).get(act).status_code == 403
    assert browser(charlie).get(act).status_code == 404
    for user in (alice, root):
        assert browser(user).get(act).status_code == 200
    assert act not in browser(bob).get(f"/jobs/{job.id}/").content.decode()


def test_pages_of_admins_refuse_others(browser: Browser, node: Node, alice: User) -> None:
    client = browser(alice)
    assert client.get("/audit/").status_code == 403
    assert client.get(f"/nodes/{node.name}/drain/").status_code == 403
    assert client.post("/nodes/add/", {"name": "node-z"}).status_code == 403
    assert client.post(f"/nodes/{node.name}/token/").status_code == 403
    assert client.post("/tenants/add/", {"slug": "mine"}).status_code == 403
    assert client.get("/tenants/vision/quotas/0/").status_code == 403
    assert client.get("/tiers/basic/").status_code == 403
    node.refresh_from_db()
    assert not node.draining


def test_writes_need_the_token_of_the_form(alice: User, job: Job) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    answer = client.post(f"/jobs/{job.id}/do/cancel/")
    assert answer.status_code == 403
    job.refresh_from_db()
    assert job.state == "waiting"


def test_a_wrong_method_is_refused(browser: Browser, alice: User) -> None:
    assert browser(alice).post("/jobs/").status_code == 405
    assert browser(alice).get("/logout/").status_code == 405


def test_what_is_not_there_is_a_page_that_says_so(browser: Browser, alice: User) -> None:
    answer = browser(alice).get("/jobs/999999/")
    assert answer.status_code == 404
    assert "There is nothing here" in answer.content.decode()
