"""Logging in and out, preferences and tokens."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from portal.actions.tokens import find_token
from portal.models import User
from tests.portal.pages.conftest import Browser


def test_logging_in_leads_on_to_the_page_that_was_asked_for(browser: Browser, alice: User) -> None:
    client = browser(None)
    told = {"username": "alice", "password": "alice", "next": "/jobs/?mine=1"}
    answer = client.post("/login/", told)
    assert answer["Location"] == "/jobs/?mine=1"
    assert client.get("/jobs/").status_code == 200
    assert client.get("/login/")["Location"] == "/"
    client.post("/logout/")
    assert client.get("/jobs/").status_code == 302


def test_a_wrong_password_is_told_without_saying_which_is_wrong(
    browser: Browser, alice: User
) -> None:
    for name in ("alice", "nobody"):
        answer = browser(None).post("/login/", {"username": name, "password": "wrong"})
        assert answer.status_code == 422
        assert "The name or the password is wrong." in answer.content.decode()


def test_guessing_is_slowed_down(browser: Browser, alice: User) -> None:
    client = browser(None)
    for _ in range(10):
        client.post("/login/", {"username": "alice", "password": "wrong"})
    answer = client.post("/login/", {"username": "alice", "password": "alice"})
    assert answer.status_code == 429


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"]
)
def test_logging_in_never_leads_elsewhere(browser: Browser, alice: User, elsewhere: str) -> None:
    told = {"username": "alice", "password": "alice", "next": elsewhere}
    assert browser(None).post("/login/", told)["Location"] == "/"


def test_the_theme_follows_the_user(browser: Browser, alice: User) -> None:
    client = browser(alice)
    assert 'data-theme="system"' in client.get("/").content.decode()
    client.post("/preferences/", {"theme": "dark"})
    assert 'data-theme="dark"' in client.get("/").content.decode()


def test_exact_times_are_in_the_zone_of_the_user(browser: Browser, alice: User) -> None:
    client = browser(alice)
    client.post("/preferences/", {"theme": "light", "time_zone": "Asia/Tokyo"})
    client.post("/tokens/", {"name": "laptop", "days": "90"})
    assert " JST" in client.get("/tokens/").content.decode()
    wrong = client.post("/preferences/", {"theme": "light", "time_zone": "Moon/Sea"})
    assert wrong.status_code == 422
    alice.refresh_from_db()
    assert (alice.theme, alice.time_zone) == ("light", "Asia/Tokyo")


def test_a_token_is_shown_once_and_can_be_revoked(browser: Browser, alice: User, bob: User) -> None:
    client = browser(alice)
    page = client.post("/tokens/", {"name": "laptop", "days": "30"}).content.decode()
    secret = re.findall(r'<code id="secret">([^<]+)</code>', page)[0]
    token = find_token(secret, datetime.now(UTC))
    assert token is not None
    assert token.expires_at is not None
    assert secret not in client.get("/tokens/").content.decode()
    assert browser(bob).post(f"/tokens/{token.id}/revoke/").status_code == 404
    assert find_token(secret, datetime.now(UTC))
    client.post(f"/tokens/{token.id}/revoke/")
    assert find_token(secret, datetime.now(UTC)) is None
    assert "Revoked" in client.get("/tokens/").content.decode()


def test_two_live_tokens_need_two_names(browser: Browser, alice: User) -> None:
    client = browser(alice)
    client.post("/tokens/", {"name": "laptop", "days": ""})
    answer = client.post("/tokens/", {"name": "laptop", "days": ""})
    assert answer.status_code == 422
    assert answer.context["form"].errors["name"]
