"""Read settings from the environment, each with a default and an error that names the variable."""

from __future__ import annotations

import os

from django.core.exceptions import ImproperlyConfigured

YES = frozenset({"1", "yes", "true", "on"})
NO = frozenset({"0", "no", "false", "off", ""})


def text(name: str, default: str) -> str:
    """Answer a variable as it stands, or the default where it is unset or empty."""
    return os.environ.get(name) or default


def number(name: str, default: int) -> int:
    """Answer a whole number; ``ImproperlyConfigured`` names the variable that is none."""
    value = text(name, str(default))
    try:
        return int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from None


def flag(name: str, *, default: bool) -> bool:
    """Answer yes or no; ``ImproperlyConfigured`` names the variable that is neither."""
    value = text(name, "yes" if default else "no").lower()
    if value in YES:
        return True
    if value in NO:
        return False
    raise ImproperlyConfigured(f"{name} must be yes or no, not {value!r}.")
