"""A real S3 server process on this machine, which forgets everything when it ends."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

from tests.processes import with_parent
from tests.product import free_port, wait_for

COMMAND = "from moto.server import main; main(['-H', '0.0.0.0', '-p', '{port}'])"


class S3Server:
    """Speaks S3 on every address. A context manager: leaving it ends the process."""

    def __init__(self) -> None:
        self.port = free_port()
        self.key = "key" + secrets.token_hex(8)
        self.secret = "secret" + secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", COMMAND.format(port=self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=with_parent(),
        )
        try:
            wait_for(self._answers, "the S3 server to answer", 90)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def options(self) -> dict[str, Any]:
        """What fsspec's file system needs to find it."""
        endpoint = self.endpoint("127.0.0.1")
        return {"key": self.key, "secret": self.secret, "endpoint_url": endpoint}

    def endpoint(self, address: str) -> str:
        return f"http://{address}:{self.port}"

    def environment(self, address: str) -> dict[str, str]:
        """What tells a process of it that knows only the URL of a bucket."""
        return {
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint(address),
        }

    def make_bucket(self) -> str:
        """Make a bucket and answer the URL of a folder in it."""
        import s3fs

        bucket = f"tidepool-{os.urandom(6).hex()}"
        s3fs.S3FileSystem(**self.options).mkdir(bucket)
        return f"s3://{bucket}/chunks"

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError("the S3 server ended")
        socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        return True

    def _end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
