"""The command line against the portal itself, in one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections

from portal.actions.tokens import create_token
from portal.client import main
from portal.models import User

Tidepool = Callable[..., Result]


@pytest.fixture(autouse=True)
def own_folders(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.OUTPUT = tmp_path / "output"
    settings.STORE = str(tmp_path / "store")
    settings.MEDIA_ROOT = tmp_path / "uploads"
    settings.ALLOWED_HOSTS = ["*"]
    cache.clear()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TIDEPOOL_URL", raising=False)
    monkeypatch.delenv("TIDEPOOL_TOKEN", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def run(db: None) -> Iterator[Tidepool]:
    """Run ``tidepool`` with these words; nobody is logged in."""

    def invoke(*words: str, **told: Any) -> Result:
        transport = httpx.WSGITransport(app=get_wsgi_application())
        return CliRunner().invoke(main, list(words), obj=transport, **told)

    # Between requests Django would close the connection that holds the test's transaction.
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield invoke
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def tidepool(run: Tidepool, alice: User, monkeypatch: pytest.MonkeyPatch) -> Tidepool:
    """Run ``tidepool`` as alice."""
    _, secret = create_token(alice, "tests")
    monkeypatch.setenv("TIDEPOOL_TOKEN", secret)
    return run


def told(result: Result) -> Any:
    """What a command answered as JSON; it must have gone well."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
