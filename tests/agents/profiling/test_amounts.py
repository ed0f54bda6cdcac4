"""Few amounts of CPUs are measured: those between which the pace still changes."""

from __future__ import annotations

import pytest

from agents.profiling.amounts import less, more, next_amount


def test_only_where_the_pace_changes_is_measured() -> None:
    amounts = [1, 2, 3, 4, 6, 9, 12, 24]
    truth = {1: 0.3, 2: 0.66, 3: 1.0, 4: 1.25, 6: 1.75, 9: 1.75, 12: 1.75, 24: 1.75}
    measured: dict[float, float] = {}
    while (amount := next_amount(measured, amounts)) is not None:
        measured[amount] = truth[int(amount)]
    assert list(measured)[:2] == [24, 1]
    assert {2, 3, 4} <= set(measured)
    assert 12 not in measured
    assert next_amount({}, [4]) == 4


def test_a_job_that_does_not_care_is_measured_twice() -> None:
    measured: dict[float, float] = {}
    while (amount := next_amount(measured, [1, 2, 3, 6, 12])) is not None:
        measured[amount] = 1.0
    assert sorted(measured) == [1, 12]


def test_what_was_measured_of_other_amounts_does_not_count() -> None:
    assert next_amount({0.25: 0.2, 1.0: 1.0, 2.0: 1.0}, [1.0, 1.5, 2.0]) is None


@pytest.mark.parametrize(
    ("share", "amounts"), [(4.0, [1.0, 2.0, 3.0, 4.0]), (0.1, [0.05, 0.075, 0.1]), (0.04, [0.04])]
)
def test_next_to_nothing_is_not_tried(share: float, amounts: list[float]) -> None:
    assert less(share) == amounts


def test_more_is_tried_as_far_as_the_node_goes() -> None:
    assert more(4.0, 6.0) == [4.0, 6.0]
    assert more(4.0, 100.0) == [4.0, 6.0, 8.0]
    assert more(4.0, 4.0) == [4.0]
