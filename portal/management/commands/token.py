"""``manage.py token ana``: make an access token for a user."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.actions.tokens import create_token
from portal.models import User
from portal.refusals import Refused


class Command(BaseCommand):
    help = "Make an access token that acts for a user, and print it this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--name", default="command line")
        parser.add_argument("--days", type=int, default=90)

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']!r}.")
        try:
            _, secret = create_token(user, options["name"], options["days"])
        except Refused as refusal:
            raise CommandError(str(refusal)) from None
        self.stdout.write(secret)
