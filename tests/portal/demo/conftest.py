"""A portal that stands in for the product, and no time lost by waiting."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from portal.demo import room
from tests.portal.demo.stand_in import StandIn


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(room, "FIRST_WORD_S", 0.0)
    yield StandIn()
