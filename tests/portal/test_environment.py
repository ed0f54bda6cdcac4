"""Settings come from the environment, and a bad one is named."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.connections import broker, database, secret_key, socket_path
from portal.environment import flag, number, text


def test_an_empty_variable_is_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEPOOL_X", "")
    assert text("TIDEPOOL_X", "a") == "a"
    assert number("TIDEPOOL_X", 3) == 3
    assert flag("TIDEPOOL_X", default=True) is True


@pytest.mark.parametrize(("value", "answer"), [("yes", True), ("OFF", False), ("1", True)])
def test_a_flag_reads_as_people_write(
    monkeypatch: pytest.MonkeyPatch, value: str, *, answer: bool
) -> None:
    monkeypatch.setenv("TIDEPOOL_X", value)
    assert flag("TIDEPOOL_X", default=not answer) is answer


def test_what_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEPOOL_X", "many")
    with pytest.raises(ImproperlyConfigured, match="TIDEPOOL_X must be a whole number"):
        number("TIDEPOOL_X", 3)
    with pytest.raises(ImproperlyConfigured, match="TIDEPOOL_X must be yes or no"):
        flag("TIDEPOOL_X", default=True)


def test_a_postgres_address_is_taken_apart() -> None:
    told = database("postgres://ana:p%40ss@db.example:6432/tide?sslmode=require")
    assert told["ENGINE"].endswith("postgresql")
    wanted = {"NAME": "tide", "USER": "ana", "PASSWORD": "p@ss", "HOST": "db.example"}
    assert wanted.items() <= told.items()
    assert (told["PORT"], told["OPTIONS"]) == ("6432", {"sslmode": "require"})


def test_sqlite_waits_its_turn_to_write() -> None:
    told = database("sqlite:////var/lib/tide%20pool/database.sqlite3")
    assert told["NAME"] == "/var/lib/tide pool/database.sqlite3"
    assert told["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_another_database_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="TIDEPOOL_DATABASE_URL"):
        database("mysql://host/name")


def test_a_deep_home_has_its_socket_elsewhere(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-long-name-of-a-folder"] * 5)
    assert socket_path(Path("/srv/tide")) == Path("/srv/tide/run/valkey.sock")
    assert len(str(socket_path(deep))) <= 107
    assert socket_path(deep) != socket_path(deep / "other")


def test_celery_knows_a_socket_by_another_scheme() -> None:
    assert broker("unix:///run/valkey.sock") == "redis+socket:///run/valkey.sock"
    assert broker("redis://broker:6379/0") == "redis://broker:6379/0"


def test_the_secret_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "home" / "secret-key"
    made = secret_key(path)
    assert len(made) >= 50
    assert secret_key(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]
