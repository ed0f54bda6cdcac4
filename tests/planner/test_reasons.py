"""Every reason reads as a sentence, and says what to do."""

from __future__ import annotations

import re
from string import Formatter

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


def test_a_sentence_agrees_with_its_number() -> None:
    assert Reason.FITS.sentence({"devices": 1}) == "1 device was free."
    assert Reason.FITS.sentence({"devices": 2.0}) == "2 devices were free."
    assert Reason.FITS.sentence() == "Some devices were free."
    assert Reason.BUSY.sentence({"wanted": 1, "free": 0}) == (
        "It needs 1 device; no suitable one is free."
    )
    assert Reason.MADE_ROOM.sentence({"count": 1}) == "1 job made room for it."


def test_long_times_are_told_in_their_largest_unit() -> None:
    numbers = {"free": 1, "ahead": "7", "waited": 7300}
    assert Reason.RESERVED.sentence(numbers) == (
        "1 device is kept for job 7, which has waited 2 h."
    )
    assert "at least 90 s more" in Reason.PROTECTED.sentence({"count": 2, "seconds": 90})


@pytest.mark.parametrize("reason", list(Reason))
def test_no_sentence_speaks_of_one_in_the_plural(reason: Reason) -> None:
    names = {name for _, name, _, _ in Formatter().parse(SENTENCES[reason]) if name}
    said = reason.sentence(dict.fromkeys(names, 1))
    several = "devices|jobs|nodes|moves|groups|ones|others|are|were"
    assert not re.search(rf"\b1 (\w+ )?({several})\b", said)


def test_waiting_longer_does_not_help_where_it_is_structural() -> None:
    assert Reason.TOO_LARGE.structural
    assert not Reason.BUSY.structural
    assert set(NEXT_STEPS) >= STRUCTURAL
