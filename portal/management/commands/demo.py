"""``manage.py demo``: play the story against the running product and show that nothing is lost."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from django.utils import timezone
from rich.console import Console
from rich.markup import escape

from portal.actions.tokens import create_token, revoke_token
from portal.demo.fleet import Fleet, NotSoError
from portal.demo.story import Outcome, play
from portal.demo.table import show
from portal.models import User

ACTORS = {"ana": "vision", "ben": "language"}
FEWEST_STEPS = 40
"""With fewer a training is over before anything can happen to it."""
INTERRUPTED = 130
"""The exit status that shells give to what Ctrl-C has ended."""


class Command(BaseCommand):
    help = "Play the story against the running product; exits 1 when something is not so."
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--steps", type=int, default=160, help="steps of each training, 40 or more"
        )
        parser.add_argument("--pace", type=float, default=0.05, help="least seconds a step takes")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["steps"] < FEWEST_STEPS:
            raise CommandError(f"--steps: give {FEWEST_STEPS} or more.")
        console = Console()

        def say(sentence: str) -> None:
            console.print(f"[dim]·[/] {escape(sentence)}", highlight=False, soft_wrap=True)

        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)
        try:
            outcome = perform(say, **{name: options[name] for name in ("steps", "pace")})
        except (NotSoError, httpx.HTTPError, OSError) as error:
            raise CommandError(str(error) or type(error).__name__) from None
        except DatabaseError:
            raise CommandError(
                f"Nothing is in {settings.HOME} yet; run `make up` first and leave it running."
            ) from None
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        show(console, outcome)
        if outcome.wrong:
            raise SystemExit(1)
        page = f"http://127.0.0.1:{settings.PORT}/jobs/{outcome.accounts[-1].job}/"
        console.print(
            f"Receipts, checkpoints and output are on each job's page: {page}", soft_wrap=True
        )


def perform(say: Callable[[str], None], **options: Any) -> Outcome:
    """Play the story and leave no job of it behind, however it ends."""
    with contextlib.ExitStack() as stack:
        ana, ben = (stack.enter_context(view_of(*actor, say)) for actor in ACTORS.items())
        try:
            return play(ana, ben, say, **options)
        finally:
            cancel_left((ana, ben), say)


def cancel_left(views: Sequence[Fleet], say: Callable[[str], None]) -> None:
    """Cancel what of the story still lives; a portal that is away is told of."""
    try:
        left = [job for view in views for job in view.cancel_submitted()]
    except (NotSoError, httpx.HTTPError) as error:
        say(f"Its jobs could not be cancelled: {error}")
        return
    if left:
        say(f"Cancelled what was left of it: job {', '.join(map(str, left))}")


@contextlib.contextmanager
def view_of(username: str, tenant: str, say: Callable[[str], None]) -> Iterator[Fleet]:
    """Open the API as one of the first accounts, with a token that ends with the story."""
    user = User.objects.filter(username=username, memberships__tenant__slug=tenant).first()
    if user is None:
        raise CommandError(f"The demo needs {username} in tenant {tenant}; run `make up` first.")
    token, secret = create_token(user, f"demo {timezone.now():%F %T.%f}", 1)
    fleet = Fleet(f"http://127.0.0.1:{settings.PORT}", secret, tenant, say=say)
    try:
        yield fleet
    finally:
        fleet.close()
        revoke_token(token)
