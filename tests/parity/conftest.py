"""The live side of parity: an empty fleet of puppets whose portal has a clock to be set."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from portal.models import User
from tests.live.puppets import Town


class Clock:
    """The portal's only clock while a test runs."""

    def __init__(self) -> None:
        self.start = timezone.now().replace(microsecond=0)
        self.passed = 0.0

    def __call__(self) -> datetime:
        return self.start + timedelta(seconds=self.passed)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stand_in = Clock()
    monkeypatch.setattr(timezone, "now", stand_in)
    return stand_in


@pytest.fixture
def town(transactional_db: None, alice: User, clock: Clock, settings: Any) -> Town:
    settings.POLICY = "eager"
    return Town(alice)
