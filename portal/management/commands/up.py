"""``manage.py up``: start everything on this machine and keep it alive until Ctrl-C."""

from __future__ import annotations

import os
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

EMBEDDED = {"TIDEPOOL_POLICY": "eager", "TIDEPOOL_STATIC_HASHED": "yes", "PYTHONUNBUFFERED": "1"}
"""What the parts are told unless the environment says otherwise: a newcomer sees moves at once."""


class Command(BaseCommand):
    help = "Start portal, workers, broker and two local agents, and keep them alive until Ctrl-C."
    requires_system_checks = []
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        from portal.supervision.predecessors import await_end
        from portal.supervision.preparation import RefusedError, claim_port, only_one
        from portal.supervision.product import bring_up
        from portal.supervision.supervisor import Supervisor

        console = Console(soft_wrap=True)
        os.umask(0o077)
        for folder in ("run", "store", "output", "uploads", "broker"):
            (settings.HOME / folder).mkdir(parents=True, exist_ok=True)
        for folder in ("", "agents"):  # passed through by jobs that run as other users
            (settings.HOME / folder).mkdir(exist_ok=True)
            (settings.HOME / folder).chmod(0o711)
        os.environ["TIDEPOOL_HOME"] = str(settings.HOME)
        os.environ["TIDEPOOL_PORT"] = str(settings.PORT)
        for name, value in EMBEDDED.items():
            os.environ.setdefault(name, value)
        supervisor = Supervisor(
            settings.ROOT,
            settings.HOME / "log",
            lambda sentence: console.print(sentence, style="yellow"),
        )

        def stop(*_: object) -> None:
            supervisor.stopping = True

        try:
            with only_one(settings.HOME):
                await_end(settings.HOME, supervisor.say)
                claim_port(settings.PORT)
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, stop)
                try:
                    bring_up(supervisor, console)
                    supervisor.watch()
                finally:
                    console.print("Stopping", style="dim")
                    supervisor.stop()
        except RefusedError as refusal:
            raise CommandError(str(refusal)) from None
        console.print("Stopped; `make up` goes on from here.", style="dim")
