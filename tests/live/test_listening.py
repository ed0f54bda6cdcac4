"""A portal that was away takes its own silence for nobody else's."""

from __future__ import annotations

import pytest

from portal.actions.linking import LEASE_S
from portal.listening import DEAF_AFTER, beat, deaf
from portal.models import Job, Node
from scheduler.live import housekeeping
from scheduler.live.reconciling import reconcile
from tests.live.puppets import Town


@pytest.fixture
def job(town: Town) -> Job:
    """A job on one of two nodes, which were heard of until the portal fell silent just now."""
    town.node("n1", 1)
    town.node("n2", 1)
    running = town.submit()
    town.rest()
    beat(town.now)
    Node.objects.update(heard_at=town.now)
    return running


def lost() -> list[str]:
    return list(Node.objects.exclude(lost_at=None).values_list("name", flat=True))


STEP_S = DEAF_AFTER.total_seconds() / 2
"""Few and long steps: real time passes besides, on a busy machine seconds of it."""


def listen_for(town: Town, seconds: float) -> None:
    for _ in range(int(seconds // STEP_S)):
        town.pass_time(STEP_S)
        beat(town.now)
        reconcile(town.now)


@pytest.mark.parametrize("leases", [0.5, 1.5, 10])
def test_away_for_shorter_or_longer_than_the_lease_it_gives_nobody_up(
    town: Town, job: Job, leases: float
) -> None:
    town.pass_time(max(leases * LEASE_S, DEAF_AFTER.total_seconds() + 1))
    assert deaf(town.now)
    reconcile(town.now)
    assert lost() == []
    beat(town.now)
    assert not deaf(town.now)
    listen_for(town, LEASE_S / 2)
    assert lost() == [], "they have a whole lease to be heard of again"
    Node.objects.filter(name=town.where(job)[0]).update(heard_at=town.now)
    listen_for(town, LEASE_S / 2 + STEP_S)
    assert town.where(job)[0] not in lost()
    assert len(lost()) == 1, "who stays silent is given up then"
    job.refresh_from_db()
    assert (job.state, job.receipts.count()) == ("running", 0)


def test_nothing_is_collected_before_agents_could_tell_what_they_have_stored(
    town: Town, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[bool] = []
    monkeypatch.setattr(housekeeping, "collect_garbage", lambda: collected.append(True) or {})
    town.pass_time(3600)
    housekeeping.keep_house(town.now)
    assert not collected, "nobody could tell anything"
    beat(town.now)
    housekeeping.keep_house(town.now)
    assert not collected, "somebody may still be about to"
    listen_for(town, LEASE_S + STEP_S)
    housekeeping.keep_house(town.now)
    assert collected


def test_it_counts_as_deaf_before_the_first_node_could_be_given_up() -> None:
    """Pings come four times a lease and are written down at most 2 s late; beats every 2 s."""
    assert DEAF_AFTER.total_seconds() + 2 <= LEASE_S - LEASE_S / 4
