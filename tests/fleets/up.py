"""``python -m tests.fleets.up SWITCH NAME=PLACE=ADDRESS ...``: the product, its agents on hosts.

What ``manage.py up`` starts, but an agent for each host named, in that host's namespace, and a
portal that the switch can reach. Runs until SIGINT.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from portal.supervision.parts import Part
    from portal.supervision.supervisor import Supervisor


def main(arguments: Sequence[str]) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    django.setup()
    from django.conf import settings

    from portal.supervision.supervisor import Supervisor

    os.umask(0o077)
    for folder in ("run", "store", "output", "uploads", "broker", "agents", "log"):
        (settings.HOME / folder).mkdir(parents=True, exist_ok=True)
    for folder in ("", "agents"):  # passed through by jobs that run as other users
        (settings.HOME / folder).chmod(0o711)
    supervisor = Supervisor(settings.ROOT, settings.HOME / "log", say)

    def stop(*_: object) -> None:
        supervisor.stopping = True

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        switch, *hosts = arguments
        bring_up(supervisor, switch, [host.split("=") for host in hosts])
        supervisor.watch()
    finally:
        supervisor.stop()


def say(sentence: str) -> None:
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def bring_up(supervisor: Supervisor, switch: str, hosts: list[list[str]]) -> None:
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connections

    from portal.actions.seeding import seed
    from portal.supervision import parts
    from portal.supervision.product import keep_tokens, wait_until_green

    broker = parts.broker(settings.REDIS_URL, settings.HOME)
    assert broker is not None
    supervisor.start(broker)
    call_command("migrate", verbosity=0, interactive=False)
    names = [name for name, _, _ in hosts]
    tokens = keep_tokens(settings.HOME, seed(names, passwords=False), names)
    supervisor.start(parts.worker("cycle", "solo", 1))
    supervisor.start(parts.worker("work", "threads", 2))
    supervisor.start(parts.beat(settings.HOME))
    portal = parts.portal(settings.PORT)
    # The last one counts: hosts come over the switch, tests over the loopback.
    supervisor.start(replace(portal, command=(*portal.command, "--host", "0.0.0.0")))
    for name, place, address in hosts:
        part = parts.agent(
            name, home=settings.HOME, port=settings.PORT, store=settings.STORE, token=tokens[name]
        )
        supervisor.start(on_host(part, place, address, f"http://{switch}:{settings.PORT}"))
    wait_until_green(supervisor)
    wait_until_able(supervisor, len(hosts))
    connections.close_all()
    say("The fleet is up; Ctrl-C stops everything")


def wait_until_able(supervisor: Supervisor, count: int) -> None:
    """Look after the parts until every host has come and can restore a job."""
    from portal.models import Node

    while not supervisor.stopping:
        supervisor.look()
        if sum(node.connected and node.able("migrate") for node in Node.objects.all()) == count:
            return
        time.sleep(0.2)


def on_host(part: Part, place: str, address: str, portal: str) -> Part:
    """The same agent in a host's namespace; told to stop, it leaves its replicas to be seen."""
    told = {
        "TIDEPOOL_PORTAL": portal,
        "TIDEPOOL_UNDERLAY": address,
        "TIDEPOOL_DRIVER": "container",
        "TIDEPOOL_ON_STOP": "leave",
    }
    return replace(
        part,
        command=("nsenter", f"--net={place}", "--", *part.command),
        environment={**part.environment, **told},
    )


if __name__ == "__main__":
    main(sys.argv[1:])
