"""``manage.py demo``: play the story against the running product and show that nothing is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from rich.console import Console

from portal.actions.tokens import create_token, revoke_token
from portal.demo.fleet import Fleet, NotSoError
from portal.demo.story import play
from portal.demo.table import show
from portal.models import User

ACTORS = {"ana": "vision", "ben": "language"}


class Command(BaseCommand):
    help = "Play the story against the running product; exits 1 when something is not so."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--steps", type=int, default=160, help="steps of each training")
        parser.add_argument("--pace", type=float, default=0.05, help="least seconds a step takes")

    def handle(self, *args: Any, **options: Any) -> None:
        console = Console(soft_wrap=False)
        with contextlib.ExitStack() as stack:
            ana, ben = (stack.enter_context(view_of(*actor)) for actor in ACTORS.items())
            try:
                outcome = play(
                    ana,
                    ben,
                    lambda sentence: console.print(f"[dim]·[/] {sentence}"),
                    steps=options["steps"],
                    pace=options["pace"],
                )
            except (NotSoError, OSError) as error:
                raise CommandError(str(error)) from None
        show(console, outcome)
        if outcome.wrong:
            raise SystemExit(1)


@contextlib.contextmanager
def view_of(username: str, tenant: str) -> Iterator[Fleet]:
    """Open the API as one of the first accounts, with a token that ends with the story."""
    user = User.objects.filter(username=username, memberships__tenant__slug=tenant).first()
    if user is None:
        raise CommandError(f"The demo needs {username} in tenant {tenant}; run `make up` first.")
    token, secret = create_token(user, f"demo {timezone.now():%F %T.%f}", 1)
    fleet = Fleet(f"http://127.0.0.1:{settings.PORT}", secret, tenant)
    try:
        yield fleet
    finally:
        fleet.close()
        revoke_token(token)
