"""Messages to groups go to the broker together, under the names that Channels listens to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from redis.client import PubSub

from portal import connections
from portal.broker import broker as client
from portal.posting import post, send_all
from tests.architecture.sources import ROOT


@pytest.fixture
def layer(broker: None, settings: Any) -> Any:
    settings.CHANNEL_LAYERS = {"default": connections.channel_layer(settings.REDIS_URL)}
    return get_channel_layer()


@pytest.fixture
def heard(layer: Any) -> Iterator[PubSub]:
    listening = client().pubsub()
    listening.psubscribe("*")
    assert listening.get_message(timeout=20)["type"] == "psubscribe"
    yield listening
    listening.close()


def following(heard: PubSub) -> tuple[bytes, bytes]:
    message = heard.get_message(timeout=20)
    assert message is not None
    return message["channel"], message["data"]


def test_a_post_is_what_channels_itself_would_send(layer: Any, heard: PubSub) -> None:
    message = {"type": "event", "event": {"kind": "node", "node": "n1"}}
    async_to_sync(layer.group_send)("fleet", message)
    theirs = following(heard)
    post("fleet", message)
    channel, packed = following(heard)
    assert channel == theirs[0]
    assert layer.deserialize(packed) == layer.deserialize(theirs[1]) == message


def test_of_what_is_said_twice_only_the_last_is_sent(layer: Any, heard: PubSub) -> None:
    first, second = {"type": "event", "event": "a"}, {"type": "event", "event": "b"}
    send_all([("g", first), ("h", first), ("g", second), ("g", first)])
    sent = [following(heard) for _ in range(3)]
    said = [(channel.rpartition(b"__")[2], layer.deserialize(packed)) for channel, packed in sent]
    assert said == [(b"h", first), (b"g", second), (b"g", first)]
    assert heard.get_message(timeout=0.01) is None


LAST_WORDS = """
import sys, django
django.setup()
from django.conf import settings
from portal import connections
settings.REDIS_URL = sys.argv[1]
settings.CHANNEL_LAYERS = {"default": connections.channel_layer(sys.argv[1])}
from portal.posting import post
post("fleet", {"type": "event", "event": "done"})
"""


def test_what_a_process_says_last_is_heard(layer: Any, heard: PubSub, settings: Any) -> None:
    command = [sys.executable, "-c", LAST_WORDS, settings.REDIS_URL]
    subprocess.run(command, check=True, cwd=ROOT, timeout=100)
    channel, packed = following(heard)
    assert channel.endswith(b"__fleet")
    assert layer.deserialize(packed) == {"type": "event", "event": "done"}
