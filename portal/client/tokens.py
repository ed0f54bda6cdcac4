"""Your bearer tokens."""

from __future__ import annotations

from typing import Any

import click

from portal.client.connection import Portal
from portal.client.telling import table, told_by, when


def tell_tokens(rows: Any) -> None:
    table(
        ["id", "name", "begins", "made", "expires", "last used", "revoked"],
        [
            (
                *(token["id"], token["name"], token["prefix"], when(token["created_at"])),
                *(when(token["expires_at"]), when(token["used_at"]), when(token["revoked_at"])),
            )
            for token in rows
        ],
        "You have no tokens.",
    )


@click.group(invoke_without_command=True)
@click.pass_context
def tokens(context: click.Context) -> None:
    """Your bearer tokens."""
    if context.invoked_subcommand is None:
        context.invoke(list_tokens)


@tokens.command("list")
@click.pass_obj
@told_by(tell_tokens)
def list_tokens(portal: Portal) -> Any:
    """List them."""
    return portal.pages("tokens/")


def tell_secret(answer: Any) -> None:
    click.echo(answer["token"])
    click.echo("Keep it well; it is shown this once.", err=True)


@tokens.command()
@click.argument("name")
@click.option("--days", type=int, default=90, show_default=True, help="0: for ever.")
@click.pass_obj
@told_by(tell_secret)
def create(portal: Portal, name: str, days: int) -> Any:
    """Make a token called NAME and print it."""
    return portal.post("tokens/", {"name": name, "days": days or None})


@tokens.command()
@click.argument("token", type=int)
@click.pass_obj
def revoke(portal: Portal, token: int) -> None:
    """Revoke TOKEN, named by its id."""
    portal.delete(f"tokens/{token}/")
