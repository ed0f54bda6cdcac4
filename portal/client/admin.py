"""What admins look after: accounts, the trail of changes, the policy."""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import quote

import click

from portal.client.connection import Portal
from portal.client.telling import fields, table, told_by, when


def tell_users(rows: Any) -> None:
    table(
        ["username", "tenants", "admin", "active", "last login"],
        [
            (
                user["username"],
                [f"{entry['tenant']} ({entry['role']})" for entry in user["memberships"]],
                *(user["admin"], user["active"], when(user["last_login"])),
            )
            for user in rows
        ],
    )


@click.group(invoke_without_command=True)
@click.pass_context
def users(context: click.Context) -> None:
    """Everyone's accounts, as admin."""
    if context.invoked_subcommand is None:
        context.invoke(list_users)


@users.command("list")
@click.pass_obj
@told_by(tell_users)
def list_users(portal: Portal) -> Any:
    """List them."""
    return portal.pages("users/")


def password(*, stdin: bool) -> str:
    if stdin:
        return sys.stdin.readline().rstrip("\n")
    return str(click.prompt("New password", hide_input=True, confirmation_prompt=True))


@users.command()
@click.argument("username")
@click.option("--email", default="")
@click.option("--admin", is_flag=True, help="Make them an admin of the platform.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.pass_obj
@told_by(lambda user: tell_users([user]))
def add(portal: Portal, username: str, email: str, admin: bool, password_stdin: bool) -> Any:
    """Make an account for USERNAME."""
    told = {"username": username, "email": email, "admin": admin}
    return portal.post("users/", {**told, "password": password(stdin=password_stdin)})


@users.command("change")
@click.argument("username")
@click.option("--admin/--no-admin", default=None)
@click.option("--active/--inactive", default=None, help="An inactive account can do nothing.")
@click.option("--new-password", is_flag=True, help="Ask for a new password.")
@click.option("--password-stdin", is_flag=True, help="Read it from standard input.")
@click.pass_obj
@told_by(lambda user: tell_users([user]))
def change_user(
    portal: Portal,
    username: str,
    admin: bool | None,
    active: bool | None,
    new_password: bool,
    password_stdin: bool,
) -> Any:
    """Change what USERNAME may do."""
    told: dict[str, Any] = {"admin": admin, "active": active}
    changes = {name: value for name, value in told.items() if value is not None}
    if new_password or password_stdin:
        changes["password"] = password(stdin=password_stdin)
    return portal.patch(f"users/{quote(username, safe='')}/", changes)


def tell_audit(rows: Any) -> None:
    table(
        ["at", "who", "what", "of", "before", "after"],
        [
            (
                *(when(row["at"]), row["actor"], row["act"], row["subject"]),
                *(row["before"], row["after"]),
            )
            for row in rows
        ],
        "Nothing was changed yet.",
    )


@click.command()
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@click.pass_obj
@told_by(tell_audit)
def audit(portal: Portal, limit: int) -> Any:
    """Who changed what, newest first, as admin."""
    return portal.pages("audit/", limit)


def tell_policy(answer: Any) -> None:
    fields(answer["in_force"].items())
    click.echo(f"Presets: {', '.join(answer['presets'])}")


@click.command()
@click.argument("preset", required=False)
@click.option("--set", "settings", multiple=True, help="FIELD=value, e.g. cooling_s=60.")
@click.pass_obj
@told_by(tell_policy)
def policy(portal: Portal, preset: str | None, settings: tuple[str, ...]) -> Any:
    """The planner's policy, as admin; with PRESET or --set another one."""
    if preset is None and not settings:
        return portal.get("policy/")
    now = portal.get("policy/")
    changes = dict(now["changes"])
    for word in settings:
        name, _, value = word.partition("=")
        try:
            changes[name] = json.loads(value)
        except ValueError:
            if not isinstance(now["in_force"].get(name), str):
                raise click.UsageError(f"--set {word}: give true, false or a number.") from None
            changes[name] = value
    chosen = now["policy"] if preset is None else preset
    return portal.put("policy/", {"policy": chosen, "changes": changes})
