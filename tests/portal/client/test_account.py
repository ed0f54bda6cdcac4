"""Logging in: what is kept, where, and for whom."""

from __future__ import annotations

import stat

import pytest

from portal.client.keeping import Login, keep_login, login_file, read_login
from portal.models import AccessToken, User
from tests.portal.client.conftest import Tidepool, told


def test_a_login_is_kept_where_only_its_owner_reads_it(run: Tidepool, alice: User) -> None:
    done = run("login", "--url", "http://portal/", input="alice\nalice\n")

    assert done.exit_code == 0, done.output
    assert "alice" in done.stdout
    assert stat.S_IMODE(login_file().stat().st_mode) == 0o600
    assert told(run("whoami", "--json"))["username"] == "alice"


def test_a_password_comes_from_standard_input(run: Tidepool, alice: User) -> None:
    words = ("login", "--url", "http://portal", "-u", "alice", "--password-stdin", "--json")
    assert told(run(*words, input="alice\n"))["username"] == "alice"


def test_a_wrong_password_keeps_nothing(run: Tidepool, alice: User) -> None:
    done = run("login", "-u", "alice", "--password-stdin", input="wrong\n")
    assert done.exit_code == 1
    assert "wrong" in done.stderr
    assert not login_file().exists()


def test_logging_out_revokes_the_token(run: Tidepool, alice: User) -> None:
    run("login", "-u", "alice", "--password-stdin", input="alice\n")
    assert told(run("logout", "--json")) == {"revoked": True}
    assert AccessToken.objects.get().revoked_at is not None
    assert not login_file().exists()
    refused = run("whoami")
    assert refused.exit_code == 1
    assert "tidepool login" in refused.stderr


def test_a_token_is_shown_only_to_the_portal_that_gave_it() -> None:
    keep_login(Login("http://mine", "tp_secret"))
    assert read_login().token == "tp_secret"
    assert read_login("http://mine/").token == "tp_secret"
    assert read_login("http://elsewhere").token == ""


def test_the_environment_goes_before_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_login(Login("http://mine", "tp_secret"))
    monkeypatch.setenv("TIDEPOOL_TOKEN", "tp_other")
    assert read_login("http://elsewhere") == Login("http://elsewhere", "tp_other")


def test_a_spoilt_file_is_named(run: Tidepool) -> None:
    login_file().parent.mkdir(parents=True)
    login_file().write_text("{")
    done = run("whoami")
    assert done.exit_code == 1
    assert str(login_file()) in done.stderr


def test_a_portal_that_is_away_is_named() -> None:
    from click.testing import CliRunner

    from portal.client import main

    done = CliRunner().invoke(main, ["--url", "http://127.0.0.1:9", "whoami"])
    assert done.exit_code == 1
    assert "No portal answers at http://127.0.0.1:9" in done.stderr


def test_tokens_are_made_listed_and_revoked(tidepool: Tidepool) -> None:
    made = told(tidepool("tokens", "create", "ci", "--days", "0", "--json"))
    assert made["expires_at"] is None
    assert "ci" in tidepool("tokens").stdout
    assert tidepool("tokens", "revoke", str(made["id"])).exit_code == 0
    rows = told(tidepool("tokens", "list", "--json"))
    assert {row["name"]: bool(row["revoked_at"]) for row in rows} == {"ci": True, "tests": False}
