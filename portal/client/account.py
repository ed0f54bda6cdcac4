"""Log in, log out, and see who one is."""

from __future__ import annotations

import contextlib
import platform
import sys
from typing import Any

import click

from portal.client.connection import Portal, Refusal, Unreachable
from portal.client.keeping import Login, forget_login, keep_login
from portal.client.telling import fields, told_by


def tell_login(answer: Any) -> None:
    click.echo(f"Logged in at {answer['url']} as {answer['username']}.")


@click.command()
@click.option("--url", help="Address of the portal.")
@click.option("--username", "-u", help="Your name there; asked for where it is missing.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--token", help="Keep this token instead of making one.")
@click.pass_obj
@told_by(tell_login)
def login(
    portal: Portal, url: str | None, username: str | None, password_stdin: bool, token: str | None
) -> Any:
    """Keep a token for this machine, so that the other commands know who you are."""
    address = (url or portal.login.url).rstrip("/")
    with contextlib.closing(portal.at(Login(address))) as stranger:
        if token is None:
            username = username or click.prompt("Username")
            told = {
                "username": username,
                "password": sys.stdin.readline().rstrip("\n")
                if password_stdin
                else click.prompt("Password", hide_input=True),
                "name": f"tidepool on {platform.node()}"[:80],
            }
            token = str(stranger.post("login/", told)["token"])
    with contextlib.closing(portal.at(Login(address, token))) as known:
        me = known.get("me/")
    path = keep_login(Login(address, token))
    return {"url": address, "username": me["username"], "kept_in": str(path)}


def tell_logout(answer: Any) -> None:
    click.echo("Logged out; the token is revoked." if answer["revoked"] else "Logged out.")


@click.command()
@click.pass_obj
@told_by(tell_logout)
def logout(portal: Portal) -> Any:
    """Revoke the kept token and forget it."""
    revoked = False
    if portal.login.token:
        with contextlib.suppress(Refusal, Unreachable):
            portal.delete(f"tokens/{portal.get('me/')['token']}/")
            revoked = True
    forget_login()
    return {"revoked": revoked}


def tell_me(me: Any) -> None:
    roles = [f"{entry['tenant']} ({entry['role']})" for entry in me["memberships"]]
    rows = [("username", me["username"]), ("tenants", roles), ("admin", me["admin"] or None)]
    fields(rows)


@click.command()
@click.pass_obj
@told_by(tell_me)
def whoami(portal: Portal) -> Any:
    """Who you are there, and your tenants."""
    return portal.get("me/")
