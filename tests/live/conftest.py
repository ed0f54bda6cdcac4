"""Fixtures of the live cycle's tests."""

from __future__ import annotations

from typing import Any

import pytest

from portal.models import User
from tests.live.puppets import Town


@pytest.fixture
def town(transactional_db: None, alice: User, settings: Any) -> Town:
    """An empty fleet; commits are real, since agents and cycles act on them."""
    settings.POLICY = "eager"
    return Town(alice)
