"""The chunk store in S3, against a real server process on this machine."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.checkpoints import (
    DamagedError,
    StoreUnreachableError,
    collect,
    fetch_image,
    open_store,
    store_image,
)
from tests.agents.checkpoints.look import look
from tests.s3 import S3Server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with S3Server() as running:
        yield running


@pytest.fixture
def options(server: S3Server) -> dict[str, Any]:
    return server.options


@pytest.fixture
def url(server: S3Server) -> str:
    return server.make_bucket()


def test_a_replica_goes_through_s3_and_is_collected(
    url: str, options: dict[str, Any], images: Path, workspace: Path, tmp_path: Path
) -> None:
    store = open_store(url, cache=tmp_path / "cache-a", options=options)
    first = store_image(store, images, workspace)
    (workspace / "step").write_text("2")
    second = store_image(store, images, workspace, base=store.load(first.manifest_key))
    assert second.bytes_new == 1

    node = open_store(url, cache=tmp_path / "cache-b", options=options)
    fetch_image(node, second.manifest_key, tmp_path / "i", tmp_path / "w")
    assert look(tmp_path / "i") == look(images)
    assert look(tmp_path / "w") == look(workspace)

    collected = collect(node, [second.manifest_key], now=time.time() + 9_999, grace_s=60)
    assert (collected.manifests, collected.chunks) == (1, 0)
    with pytest.raises(DamagedError):
        store.load(first.manifest_key)
    assert collect(node, [], now=time.time() + 9_999, grace_s=60).chunks > 0
    assert store.blobs.find("c/") == []
    third = store_image(store, images, workspace).manifest_key
    fetch_image(node, third, tmp_path / "i", tmp_path / "w")


def test_a_truncated_object_is_refused(
    url: str, options: dict[str, Any], images: Path, workspace: Path, tmp_path: Path
) -> None:
    store = open_store(url, options=options)
    key = store_image(store, images, workspace).manifest_key
    victim = store.blobs.find("c/")[0].key
    data = store.blobs.get([victim])[0]
    assert data
    store.blobs.put({victim: data[:-3]})
    with pytest.raises(DamagedError):
        fetch_image(store, key, tmp_path / "i", tmp_path / "w")
    assert not (tmp_path / "i").exists()


def test_a_bucket_that_is_not_there_is_told(
    options: dict[str, Any], images: Path, workspace: Path
) -> None:
    store = open_store("s3://no-such-bucket-of-ours/chunks", options=options)
    with pytest.raises(StoreUnreachableError):
        store_image(store, images, workspace)


def test_a_server_that_is_not_there_is_told(images: Path, workspace: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
        options = {
            "key": "k",
            "secret": "s",
            "endpoint_url": closed,
            "config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 2},
        }
        with pytest.raises(StoreUnreachableError):
            store_image(open_store("s3://bucket/chunks", options=options), images, workspace)
