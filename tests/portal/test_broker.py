"""A broker that hangs is found out by one caller, and the others are told at once."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import redis

from portal import broker


@pytest.fixture
def _hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server that takes connections and never answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        client = redis.Redis(port=silent.getsockname()[1], socket_timeout=0.05, retry=None)
        monkeypatch.setattr(broker, "broker", lambda: client)
        monkeypatch.setattr(broker.Silence, "until", 0.0)
        yield
        client.close()


@pytest.mark.usefixtures("_hanging")
def test_only_the_first_caller_waits() -> None:
    with pytest.raises(redis.TimeoutError), broker.reach() as client:
        client.ping()
    with pytest.raises(redis.ConnectionError, match="a moment ago"), broker.reach():
        raise AssertionError("nobody comes this far")


def test_a_broker_that_is_gone_is_asked_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker.Silence, "until", 0.0)
    with pytest.raises(redis.ConnectionError), broker.reach():
        raise redis.ConnectionError("refused")
    with broker.reach() as client:
        assert client is broker.broker()
