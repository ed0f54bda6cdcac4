"""The chunk store in S3, against a real server process on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

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

pytestmark = pytest.mark.slow

SERVER = "from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER.format(port=port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, "the S3 server ended"
                assert time.monotonic() < deadline, "the S3 server does not answer"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def options(endpoint: str) -> dict[str, object]:
    return {"key": "tidepool", "secret": "tidepool", "endpoint_url": endpoint}


@pytest.fixture
def url(options: dict[str, object]) -> str:
    import s3fs

    bucket = f"tidepool-{os.urandom(6).hex()}"
    s3fs.S3FileSystem(**options).mkdir(bucket)
    return f"s3://{bucket}/chunks"


def test_a_replica_goes_through_s3_and_is_collected(
    url: str, options: dict[str, object], images: Path, workspace: Path, tmp_path: Path
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
    url: str, options: dict[str, object], images: Path, workspace: Path, tmp_path: Path
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
    options: dict[str, object], images: Path, workspace: Path
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
