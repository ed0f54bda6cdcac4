"""Addresses as they may be told: in logs, facts and errors."""

from __future__ import annotations

import re


def without_login(address: str) -> str:
    """Return a URL without the name and password that may stand in it."""
    return re.sub(r"://[^/@]*@", "://", address)
