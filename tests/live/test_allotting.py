"""From a measurement to other CPUs of a running job, through rows and desired states."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from agents.protocol import Profile, ProfilePoint
from portal.actions.desired import desired_state
from portal.actions.planning import set_policy
from portal.actions.profiling import ask_profile
from portal.actions.steering import migrate_job
from portal.models import Job, PlacedReplica
from portal.models import Profile as ProfileRow
from tests.live.puppets import Puppet, Town


def found(*points: tuple[float, float], **more: Any) -> Profile:
    """What an agent measured of a replica whose share is the last point but those above it."""
    told = {"at": 1e9, "seconds": 9.0, "source": "cpu", "share": 32.0, "working": 1 << 30, **more}
    return Profile(
        number=0, points=[ProfilePoint(cpus=cpus, pace=pace) for cpus, pace in points], **told
    )


CONTENT = found((8.0, 1.0), (32.0, 1.0))
HUNGRY = found((8.0, 0.25), (16.0, 0.5), (32.0, 1.0), (48.0, 1.5))


def allotted(puppet: Puppet) -> dict[int, float]:
    """CPUs of each job's replica as the node's agent is told; 0: its own."""
    return {d.job: d.allotted for d in desired_state(puppet.node.id).replicas}


def measured(town: Town, puppet: Puppet, job: Job, profile: Profile) -> None:
    """Have a running job measured."""
    puppet.profiles[job.id] = profile
    ask_profile(town.user, job)
    town.rest()
    job.refresh_from_db()
    assert job.profiled == job.profile_asked > 0


def choose(town: Town, **changes: Any) -> None:
    town.user.is_staff = True
    town.user.save()
    set_policy(town.user, "eager", changes)


def test_who_gains_nothing_lends_and_gets_it_back(town: Town) -> None:
    puppet = town.node("n1", 2, kind="H100")
    content, hungry = town.submit(command=["idle"]), town.submit(command=["busy"])
    town.rest()
    measured(town, puppet, content, CONTENT)
    measured(town, puppet, hungry, HUNGRY)
    assert allotted(puppet) == {content.id: 0.0, hungry.id: 0.0}, "sharing is off"
    choose(town, sharing="tune")
    town.rest()
    assert allotted(puppet) == {content.id: 16.0, hungry.id: 48.0}
    number = desired_state(puppet.node.id).number
    town.rest()
    assert desired_state(puppet.node.id).number == number, "nothing more to say"
    choose(town, sharing="proportional")
    town.rest()
    assert allotted(puppet) == {content.id: 32.0, hungry.id: 32.0}
    choose(town)
    town.rest()
    assert allotted(puppet) == {content.id: 0.0, hungry.id: 0.0}


def test_what_was_measured_of_one_holds_for_the_next_of_its_kind(town: Town) -> None:
    puppet = town.node("n1", 4, kind="H100")
    choose(town, sharing="tune")
    first = town.submit()
    town.rest()
    measured(town, puppet, first, found((4.0, 1.0), (16.0, 1.0), share=16.0))
    same, other = town.submit(), town.submit(environment={"BATCH": "9"})
    town.rest()
    told = allotted(puppet)
    assert (told[first.id], told[same.id], told[other.id]) == (8.0, 8.0, 16.0)
    assert same.recipe == first.recipe != other.recipe


def test_other_devices_tell_nothing(town: Town) -> None:
    slow, fast = town.node("n1", 1, kind="T4"), town.node("n2", 1, kind="H100")
    choose(town, sharing="tune")
    jobs = [town.submit(), town.submit()]
    town.rest()
    (on_slow,) = [job for job in jobs if town.where(job) == ["n1"]]
    measured(town, slow, on_slow, found((16.0, 1.0), (64.0, 1.0), share=64.0))
    assert list(allotted(slow).values()) == [32.0]
    assert list(allotted(fast).values()) == [64.0]


def test_jobs_are_measured_by_themselves_where_admins_say_so(town: Town) -> None:
    puppet = town.node("n1", 4)
    jobs = [town.submit(command=[name]) for name in ("a", "b")]
    never = town.submit(command=["c"], unprofiled=True)
    ending = town.submit(command=["d"], expected_s=90.0)
    for job in (*jobs, never, ending):
        puppet.profiles[job.id] = CONTENT
    town.rest()
    town.pass_time(61)
    Job.objects.update(running_since=town.now - timedelta(seconds=61))
    town.rest()
    assert not ProfileRow.objects.exists(), "it is off unless chosen"
    choose(town, profiling=True)
    town.rest()
    assert ProfileRow.objects.count() == 1, "a node has one turn at a time"
    Job.objects.update(profile_asked_at=town.now - timedelta(hours=1))
    town.rest()
    town.rest()
    asked = set(Job.objects.filter(profiled=1).values_list("id", flat=True))
    assert asked == {job.id for job in jobs}


def test_who_could_not_be_measured_is_tried_again_later_and_not_for_ever(town: Town) -> None:
    puppet = town.node("n1", 1)
    job = town.submit()
    puppet.profiles[job.id] = Profile(number=0, at=1e9, error="Others used the CPUs.")
    town.rest()
    choose(town, profiling=True)
    Job.objects.update(running_since=town.now - timedelta(minutes=5))
    tries = []
    for _ in range(5):
        town.rest()
        tries.append(ProfileRow.objects.count())
        town.rest()
        Job.objects.update(profile_asked_at=town.now - timedelta(hours=2))
    assert tries == [1, 2, 3, 3, 3]


def test_a_move_in_the_midst_has_it_measured_at_its_new_place(town: Town) -> None:
    town.node("n1", 1)
    job = town.submit()
    town.rest()
    ask_profile(town.user, job)
    other = town.node("n2", 1)
    other.profiles[job.id] = CONTENT
    migrate_job(town.user, job)
    town.rest()
    assert ProfileRow.objects.get().node == "n2"
    assert PlacedReplica.objects.filter(profile=1).count() == 1
