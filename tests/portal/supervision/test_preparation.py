"""A home has one supervisor, a port one listener, and logs do not grow for ever."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from portal.supervision.logs import open_log, rotate, tail
from portal.supervision.preparation import RefusedError, claim_port, only_one


def test_a_second_one_in_the_same_home_is_refused(tmp_path: Path) -> None:
    refused = pytest.raises(RefusedError, match=f"already running .*process {os.getpid()}")
    with only_one(tmp_path), refused, only_one(tmp_path):
        pass
    with only_one(tmp_path):
        assert (tmp_path / "run" / "lock").read_text() == str(os.getpid())


def test_a_port_in_use_is_refused_with_the_remedy() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(RefusedError, match="Set TIDEPOOL_PORT"):
            claim_port(taken.getsockname()[1])


def test_a_log_that_outgrew_its_limit_is_cut_under_its_writer(tmp_path: Path) -> None:
    log = open_log(tmp_path, "portal")
    try:
        os.write(log, b"old\n" * 100)
        rotate(tmp_path, limit=100)
        os.write(log, b"new\n")
    finally:
        os.close(log)
    assert (tmp_path / "portal.log").read_bytes() == b"new\n"
    assert (tmp_path / "portal.log.1").read_bytes() == b"old\n" * 100
    assert tail(tmp_path, "portal") == "new"


def test_a_log_is_read_by_nobody_else(tmp_path: Path) -> None:
    os.close(open_log(tmp_path, "portal"))
    assert (tmp_path / "portal.log").stat().st_mode & 0o077 == 0
