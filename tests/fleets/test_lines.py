"""The lines of the parameter server are checked against an undisturbed run."""

from __future__ import annotations

import pytest

from tests.fleets.service import astray, undisturbed

STATES = undisturbed(4, 2)


def line(step: int) -> str:
    return f"step {step} state {STATES[step]} at 17.389"


@pytest.mark.parametrize(
    "lines",
    [
        [line(1), line(2), line(3)],
        [line(1), line(2), line(3), line(2), line(3), line(4)],
        [line(1), line(2), line(3) + line(2), line(3)],
        [line(1), line(2), line(3)[:11] + line(2), line(3)],
    ],
)
def test_going_back_is_right_even_in_the_middle_of_a_line(lines: list[str]) -> None:
    assert astray(lines, STATES) == []


@pytest.mark.parametrize(
    "lines",
    [
        [line(1), line(3)],
        [line(1), line(2).replace(STATES[2], STATES[3])],
        [line(1), line(2) + line(4)],
        [line(1), line(3)[:11] + line(2)],
        [line(1), line(2)[:-9]],
    ],
)
def test_a_gap_or_another_state_is_found(lines: list[str]) -> None:
    assert astray(lines, STATES) != []
