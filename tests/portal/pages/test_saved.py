"""Views of the list of jobs, kept under names."""

from __future__ import annotations

import pytest

from portal.actions import saving
from portal.models import SavedView, User
from tests.portal.pages.conftest import Browser


def keep(browser: Browser, user: User, name: str, query: str) -> int:
    told = {"name": name, "query": query}
    return browser(user).post("/jobs/views/save/", told).status_code


def test_a_view_is_kept_shown_and_forgotten(browser: Browser, alice: User, bob: User) -> None:
    assert keep(browser, alice, "mine & waiting", "state=waiting&mine=1&page=3") == 200
    view = SavedView.objects.get()
    assert (view.user, view.query) == (alice, "state=waiting&mine=1")
    page = browser(alice).get("/jobs/?mine=1&state=waiting").content.decode()
    assert 'class="view" aria-current="true"' in page
    assert "mine &amp; waiting" in page
    assert "mine &amp; waiting" not in browser(bob).get("/jobs/").content.decode()
    assert browser(alice).get(f"/jobs/?{view.query}").status_code == 200

    browser(bob).post(f"/jobs/views/{view.id}/remove/")
    assert SavedView.objects.exists()
    browser(alice).post(f"/jobs/views/{view.id}/remove/")
    assert not SavedView.objects.exists()


def test_a_name_is_given_once(browser: Browser, alice: User) -> None:
    keep(browser, alice, "failed", "state=failed")
    keep(browser, alice, "failed", "state=failed&mine=1")
    assert SavedView.objects.get().query == "state=failed&mine=1"


@pytest.mark.parametrize(
    ("name", "query", "words"),
    [("", "mine=1", "1 to 60"), ("x" * 61, "mine=1", "1 to 60"),
     ("long", "q=" + "x" * 700, "too long")],
)  # fmt: skip
def test_a_wrong_view_is_refused(
    browser: Browser, alice: User, name: str, query: str, words: str
) -> None:
    answer = browser(alice).post("/jobs/views/save/", {"name": name, "query": query})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not SavedView.objects.exists()


def test_the_whole_list_is_no_view(browser: Browser, alice: User) -> None:
    assert keep(browser, alice, "all", "page=2&x=y") == 422


def test_nobody_keeps_views_without_end(
    browser: Browser, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "MOST", 1)
    assert keep(browser, alice, "one", "mine=1") == 200
    assert keep(browser, alice, "two", "mine=1") == 422


def test_the_strip_follows_the_filters(browser: Browser, alice: User) -> None:
    client = browser(alice)
    assert "Keep this view" not in client.get("/jobs/").content.decode()
    assert "Keep this view" in client.get("/jobs/views/?q=resnet").content.decode()
