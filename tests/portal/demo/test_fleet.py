"""A wait says what it waits for, outlives a portal that is away, and ends with a reason."""

from __future__ import annotations

import pytest

from portal.demo.fleet import NotNowError, NotSoError
from tests.portal.demo.stand_in import StandIn


def test_a_long_wait_says_what_is_in_the_way(portal: StandIn) -> None:
    ana, answers = portal.fleet(), iter([False, False, True])
    ana.wait("rain", lambda: next(answers), first_word_s=0.0, why=lambda: "the sky is clear")
    assert portal.said == ["Waiting for rain: the sky is clear"]


def test_a_wait_in_vain_ends_with_the_reason(portal: StandIn) -> None:
    job = portal.add(1, state="waiting", sentence="It needs 2 devices; none is free.")
    ana = portal.fleet()
    with pytest.raises(NotSoError, match=r"in vain for job 1: it is waiting. It needs 2 devices"):
        ana.wait("job 1", bool, within_s=0.05, first_word_s=0.0, why=lambda: ana.standing(job))


def test_a_portal_that_is_away_for_a_while_is_waited_for(portal: StandIn) -> None:
    portal.add(1, state="succeeded")
    portal.away = True
    portal.soon(*[lambda: None] * 3, lambda: setattr(portal, "away", False))
    assert portal.fleet().wait_for_end(1)["state"] == "succeeded"


def test_a_step_of_a_job_that_somebody_cancelled_is_not_waited_for(portal: StandIn) -> None:
    portal.add(1, state="cancelled", detail="Cancelled by ben.")
    with pytest.raises(NotSoError, match=r"before step 5: it is cancelled\. Cancelled by ben"):
        portal.fleet().wait_for_step(1, 5)


def test_what_does_not_go_now_is_told_apart(portal: StandIn) -> None:
    portal.add(1)
    portal.refusal = "Only a running job can be moved."
    with pytest.raises(NotNowError, match="Only a running job"):
        portal.fleet().migrate(1)


def test_only_what_it_has_submitted_is_cancelled(portal: StandIn) -> None:
    somebody_elses = portal.add(1)
    ana = portal.fleet()
    assert ana.cancel_submitted() == []
    ana.submitted = [2, 3]
    portal.add(2)
    portal.add(3, state="succeeded")
    assert ana.cancel_submitted() == [2]
    assert portal.jobs[somebody_elses]["state"] == "running"
