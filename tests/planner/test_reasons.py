"""Every reason reads as a sentence, and says what to do."""

from __future__ import annotations

import pytest

from scheduler.planner import Reason
from scheduler.planner.reasons import NEXT_STEPS, SENTENCES, STRUCTURAL


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_a_sentence(reason: Reason) -> None:
    assert SENTENCES[reason]
    for said in (reason.sentence(), reason.sentence({"wanted": 8, "free": 2.0})):
        assert not said[0].islower() and said.endswith(".")
        assert "{" not in said
    assert reason.next_step.endswith(".")


def test_numbers_are_told() -> None:
    said = Reason.QUOTA.sentence({"tenant": "vision", "used": 7, "limit": 8.0, "wanted": 2})
    assert said == "Tenant vision uses 7 of its limit of 8 devices; this job needs 2."


def test_waiting_longer_does_not_help_where_it_is_structural() -> None:
    assert Reason.TOO_LARGE.structural
    assert not Reason.BUSY.structural
    assert set(NEXT_STEPS) >= STRUCTURAL
