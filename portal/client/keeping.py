"""Where the command line keeps which portal it talks to, and the token it shows there."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import click

DEFAULT_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class Login:
    """An address and the token that is shown there; an empty token: nobody is logged in."""

    url: str
    token: str = ""


def login_file() -> Path:
    """Answer the file that only its owner reads, below XDG_CONFIG_HOME or ~/.config."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "tidepool/login"


def read_login(url: str | None = None) -> Login:
    """Answer the login from TIDEPOOL_URL and TIDEPOOL_TOKEN, else the kept one.

    A kept token is shown only to the portal that gave it.
    """
    kept = _kept()
    address = (url or kept.url or DEFAULT_URL).rstrip("/")
    token = os.environ.get("TIDEPOOL_TOKEN") or (kept.token if kept.url == address else "")
    return Login(address, token)


def keep_login(login: Login) -> Path:
    """Write the login where only its owner may read it, whole or not at all."""
    path = login_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".login-{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.chmod(0o600)
    fresh.write_text(json.dumps({"url": login.url, "token": login.token}) + "\n")
    fresh.replace(path)
    return path


def forget_login() -> None:
    login_file().unlink(missing_ok=True)


def _kept() -> Login:
    path = login_file()
    try:
        told = json.loads(path.read_text())
        return Login(str(told["url"]), str(told["token"]))
    except FileNotFoundError:
        return Login("")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.ClickException(
            f"{path} can't be read ({error}); remove it and log in again."
        ) from None
