"""Accounts as admins keep them, and one's own password."""

from __future__ import annotations

from collections.abc import Callable

from portal.models import AuditEntry, Job, Tenant, User
from tests.portal.pages.conftest import Browser

GOOD = "long-enough-7"


def test_an_admin_finds_accounts_by_name_tenant_and_kind(
    browser: Browser, alice: User, charlie: User, root: User
) -> None:
    client = browser(root)

    def shown(query: str) -> list[str]:
        return [row.username for row in client.get(f"/accounts/?{query}").context["page_"]]

    assert shown("") == ["alice", "charlie", "root"]
    assert shown("q=ALI") == ["alice"]
    assert shown("q=language") == ["charlie"]
    assert shown("kind=admins") == shown("kind=no-tenant") == ["root"]
    assert "No account is like this" in client.get("/accounts/?q=zzz").content.decode()


def test_an_admin_adds_an_account(browser: Browser, root: User) -> None:
    told = {"username": "dora", "email": "dora@example.com", "password": GOOD}
    answer = browser(root).post("/accounts/", told)
    assert answer["Location"] == "/accounts/dora/"
    dora = User.objects.get(username="dora")
    assert dora.check_password(GOOD)
    assert not dora.is_staff
    assert AuditEntry.objects.get().subject == "account dora"


def test_a_wrong_account_is_refused_at_its_field(browser: Browser, alice: User, root: User) -> None:
    answer = browser(root).post("/accounts/", {"username": "alice", "password": GOOD})
    assert answer.status_code == 422
    assert "There is an account" in answer.content.decode()
    assert GOOD not in answer.content.decode()
    answer = browser(root).post("/accounts/", {"username": "eve", "password": "short"})
    assert "password" in answer.context["form"].errors


def test_shutting_someone_out_says_what_becomes_of_their_jobs(
    browser: Browser, job: Job, alice: User, root: User
) -> None:
    assert "1 live job of theirs" in browser(root).get("/accounts/alice/").content.decode()
    theirs = browser(alice)
    assert theirs.get("/jobs/").status_code == 200
    browser(root).post("/accounts/alice/", {"email": ""})
    alice.refresh_from_db()
    assert not alice.is_active
    assert theirs.get("/jobs/").status_code == 302
    job.refresh_from_db()
    assert not job.ended


def test_an_admin_can_not_shut_themselves_out(browser: Browser, root: User) -> None:
    answer = browser(root).post("/accounts/root/", {"email": "r@example.com"})
    assert answer.status_code == 422
    assert "ask another admin" in answer.content.decode()


def test_an_admin_sets_a_password(browser: Browser, alice: User, root: User) -> None:
    browser(root).post("/accounts/alice/password/", {"password": GOOD})
    alice.refresh_from_db()
    assert alice.check_password(GOOD)
    answer = browser(root).post("/accounts/alice/password/", {"password": "1"})
    assert answer.status_code == 422


def test_anyone_changes_their_own_password_and_stays_logged_in(
    browser: Browser, alice: User
) -> None:
    client = browser(alice)
    wrong = client.post("/preferences/password/", {"old_password": "no", "new_password": GOOD})
    assert wrong.status_code == 422
    client.post("/preferences/password/", {"old_password": "alice", "new_password": GOOD})
    alice.refresh_from_db()
    assert alice.check_password(GOOD)
    assert client.get("/jobs/").status_code == 200


def test_accounts_are_for_admins_only(browser: Browser, alice: User, bob: User) -> None:
    client = browser(alice)
    assert client.get("/accounts/").status_code == 403
    assert client.get("/accounts/bob/").status_code == 403
    assert client.post("/accounts/bob/password/", {"password": GOOD}).status_code == 403
    assert client.post("/accounts/", {"username": "x", "password": GOOD}).status_code == 403
    bob.refresh_from_db()
    assert not bob.check_password(GOOD)


def test_an_account_that_is_not_there(browser: Browser, root: User) -> None:
    assert browser(root).get("/accounts/nobody/").status_code == 404


def test_the_list_asks_a_fixed_number_of_times(
    browser: Browser, root: User, make_user: Callable[..., User], vision: Tenant,
    django_assert_max_num_queries: Callable[[int], object],
) -> None:  # fmt: skip
    for number in range(5):
        make_user(f"user-{number}", vision)
    client = browser(root)
    with django_assert_max_num_queries(7):  # type: ignore[attr-defined]
        client.get("/accounts/")
