"""Bring the whole product up in order, and take it down again."""

from __future__ import annotations

import http.client
import time
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from rich.console import Console

from portal.actions.nodes import new_secret
from portal.actions.seeding import Seeded, seed
from portal.actions.tokens import digest
from portal.models import Node
from portal.supervision import parts
from portal.supervision.logs import tail
from portal.supervision.preparation import RefusedError, StaticFiles
from portal.supervision.screen import show
from portal.supervision.supervisor import Supervisor

NODES = ("node-a", "node-b")
GREEN_WITHIN_S = 180.0


def bring_up(supervisor: Supervisor, console: Console) -> None:
    """Start every part, each as soon as what it stands on is there, and show the screen once green.

    Raises ``RefusedError`` when a step fails or nothing answers within three minutes.
    """
    home: Path = settings.HOME
    broker = parts.broker(settings.REDIS_URL, home)
    if broker is not None:
        supervisor.start(broker)
    files = StaticFiles(settings.STATIC_ROOT)
    call_command("migrate", verbosity=0, interactive=False)
    seeded = seed(NODES)
    tokens = keep_tokens(home, seeded)
    supervisor.start(parts.worker("cycle", "solo", 1))
    # One thread of them waits for a simulation's process, when there is one.
    supervisor.start(parts.worker("work", "threads", 3))
    supervisor.start(parts.beat(home))
    files.wait()
    supervisor.start(parts.portal(settings.PORT))
    for node, token in tokens.items():
        supervisor.start(
            parts.agent(node, home=home, port=settings.PORT, store=settings.STORE, token=token)
        )
    wait_until_green(supervisor)
    address = f"http://127.0.0.1:{settings.PORT}/"
    show(console, address=address, accounts=seeded.accounts, home=str(home))
    connections.close_all()


def keep_tokens(home: Path, seeded: Seeded, nodes: Sequence[str] = NODES) -> dict[str, Path]:
    """Write new nodes' tokens where only their agent reads them; answer every node's file.

    A token whose file was lost is replaced by a new one.
    """
    files = {}
    for node in nodes:
        path = home / "agents" / node / "token"
        path.parent.mkdir(parents=True, exist_ok=True)
        if node in seeded.node_tokens or not path.exists():
            secret = seeded.node_tokens.get(node) or new_secret()
            path.touch(mode=0o600)
            path.write_text(secret)
            Node.objects.filter(name=node).update(token_digest=digest(secret))
        files[node] = path
    return files


def wait_until_green(supervisor: Supervisor) -> None:
    """Look after the parts until the health check is green and every node's agent has come."""
    until = time.monotonic() + GREEN_WITHIN_S
    answer = "no answer"
    while not supervisor.stopping:
        supervisor.look()
        status, answer = ask(settings.PORT)
        if status == 200:
            return
        if time.monotonic() > until:
            logs = "\n".join(tail(supervisor.logs, name) for name in supervisor.children)
            raise RefusedError(f"Not healthy within {GREEN_WITHIN_S:.0f} s: {answer}\n{logs}")
        time.sleep(0.1)


def ask(port: int) -> tuple[int, str]:
    """Answer the health check's status and body; status 0 where nothing answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)
    finally:
        connection.close()
