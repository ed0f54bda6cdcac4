"""What can be measured, what is kept of it, and who is refused."""

from __future__ import annotations

import pytest

from agents.protocol import Ability, Facts, Profile, ProfilePoint, ReplicaFact, State
from portal.actions.desired import desired_state
from portal.actions.facts import accept_facts
from portal.actions.profiling import KEPT, ask_profile
from portal.gains import profile_of
from portal.models import Job
from portal.models import Profile as ProfileRow
from portal.refusals import Refused
from tests.live.conftest import town
from tests.live.puppets import Puppet, Town

__all__ = ["town"]


def tell(puppet: Puppet, job: Job, number: int, **more: object) -> None:
    """Report a running replica that was measured."""
    profile = Profile(
        number=number, at=1e9 + number, share=1.0, points=[ProfilePoint(cpus=1.0, pace=1.0)]
    )
    fact = ReplicaFact(
        job=job.id, rank=0, epoch=job.epoch, state=State.RUNNING, started_at=1000.0,
        profile=profile, **more,  # type: ignore[arg-type]
    )  # fmt: skip
    accept_facts(puppet.node.id, Facts(number=1, replicas=[fact]))


def test_it_is_asked_of_rank_0_until_it_has_come(town: Town) -> None:
    puppet = town.node("n1", 2)
    job = town.submit(replicas=2)
    town.rest()
    before = desired_state(puppet.node.id).number
    ask_profile(town.user, job)
    state = desired_state(puppet.node.id)
    assert [replica.profile for replica in state.replicas] == [1, 0]
    assert state.number > before
    job.refresh_from_db()
    tell(puppet, job, 1)
    tell(puppet, job, 1)
    assert ProfileRow.objects.count() == 1
    assert [replica.profile for replica in desired_state(puppet.node.id).replicas] == [0, 0]
    ask_profile(town.user, job)
    assert desired_state(puppet.node.id).replicas[0].profile == 2


def test_old_measurements_are_forgotten(town: Town) -> None:
    puppet = town.node("n1", 1)
    job = town.submit()
    town.rest()
    job.refresh_from_db()
    for number in range(1, KEPT + 3):
        tell(puppet, job, number)
    numbers = list(ProfileRow.objects.values_list("number", flat=True))
    assert numbers == list(range(KEPT + 2, 2, -1))
    newest = profile_of(job)
    assert newest is not None and newest.number == KEPT + 2


def test_who_cannot_be_measured_is_told_why(town: Town) -> None:
    cannot = Ability(able=False, reason="no groups here")
    town.node("n1", 2, abilities={"profile": cannot})
    running, never = town.submit(), town.submit(unprofiled=True)
    waiting = town.submit()
    town.rest()
    for job, why in ((running, "no groups here"), (never, "must not"), (waiting, "Only a running")):
        job.refresh_from_db()
        with pytest.raises(Refused, match=why):
            ask_profile(town.user, job)
