"""Several planners share a fleet by cluster: the whole sends, clusters place, races end well."""

from __future__ import annotations

import random
import socket
import subprocess
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from portal.actions.homes import homes
from portal.actions.nodes import drain_node, place_node
from portal.actions.planning import set_policy
from portal.actions.promising import turn_in
from portal.actions.steering import cancel_job, pause_job, resume_job
from portal.models import Job, Lease, Node, PlacedReplica, Placement, Quota, Tenant, User
from scheduler import planner
from scheduler.cycle import run_cycle
from scheduler.live import sharing
from scheduler.live.cluster import live_policy
from scheduler.live.lease import turn
from scheduler.live.naming import job_id
from scheduler.live.neighbourhoods import ClusterWatch
from scheduler.live.observing import Watch, observe
from scheduler.live.sharing import Neighbourhood, SharedFleet
from scheduler.live.turns import take_turn, take_turn_in
from scheduler.planner.hierarchy import Atlas, placing, share
from tests.live.puppets import Town
from tests.live.test_races import at_once
from tests.live.test_watching import happen, told


class Planners:
    """A worker that knows the whole and each cluster from its last turns."""

    def __init__(self, town: Town) -> None:
        self.town, self.atlas = town, Atlas()
        self.whole = (Watch(), planner.Memory())
        self.of = {name: (ClusterWatch(name), planner.Memory()) for name in "ab"}

    def fleet(self) -> SharedFleet:
        return SharedFleet(self.atlas, self.town.now, self.whole[0])

    def plan_whole(self) -> None:
        run_cycle(self.fleet(), live_policy(), self.whole[1])

    def plan_in(self, cluster: str) -> None:
        watch, memory = self.of[cluster]
        run_cycle(Neighbourhood(watch, self.town.now), placing(live_policy()), memory)

    def rest(self) -> None:
        for _ in range(20):
            self.plan_whole()
            for cluster in self.of:
                self.plan_in(cluster)
            changed = [puppet.step() for puppet in self.town.puppets.values()]
            if not any(changed):
                return
        raise AssertionError("the fleet does not come to rest")


@pytest.fixture
def planners(town: Town, root: User, monkeypatch: pytest.MonkeyPatch) -> Planners:
    """Two clusters of two nodes with two devices each, shared from the first job on."""
    monkeypatch.setattr(sharing, "FEW", 0)
    for name in ("a1", "a2", "b1", "b2"):
        town.node(name, 2)
        Node.objects.filter(name=name).update(cluster=name[0])
    Quota.objects.all().delete()
    set_policy(root, "", {"by_cluster": True})
    return Planners(town)


def seats() -> list[tuple[str, str]]:
    rows = PlacedReplica.objects.filter(placement__state__in=("active", "held"))
    return [(row.node.name, device) for row in rows for device in row.devices]


def sound(jobs: Collection[Job]) -> None:
    """Nothing is promised twice, and no job has two places."""
    taken = seats()
    assert len(taken) == len(set(taken))
    placed = Placement.objects.filter(job__in=jobs).exclude(state="ended")
    assert max(Counter(placed.values_list("job_id", flat=True)).values(), default=1) == 1


def limit(devices: int) -> None:
    """Give the jobs' tenant a hard limit."""
    tenant = Tenant.objects.get(slug="vision")
    Quota.objects.create(tenant=tenant, device_kind="", reserved=devices, borrow=0)


def test_the_whole_sends_and_the_clusters_place(town: Town, planners: Planners) -> None:
    jobs = [town.submit() for _ in range(6)]
    planners.plan_whole()
    assert set(homes()) == {job.id for job in jobs} and set(homes().values()) == {"a", "b"}
    jobs[0].refresh_from_db()
    assert jobs[0].reason == "sent" and "cluster" in jobs[0].sentence
    for cluster in "ab":
        planners.plan_in(cluster)
    assert homes() == {}
    assert {node[0] for job in jobs for node in town.where(job)} == {"a", "b"}
    planners.rest()
    assert Job.objects.filter(state="running").count() == 6
    sound(jobs)


def test_who_waits_has_its_reason_and_comes_in_its_turn(town: Town, planners: Planners) -> None:
    first = [town.submit(replicas=4) for _ in range(2)]
    planners.rest()
    late = town.submit(replicas=4)
    planners.rest()
    late.refresh_from_db()
    assert (late.state, late.reason, late.home) == ("waiting", "busy", None)
    cancel_job(town.user, first[0])
    planners.rest()
    assert town.where(late)


def test_gangs_that_span_clusters_and_drains_are_the_wholes(
    town: Town, planners: Planners, root: User
) -> None:
    wide = town.submit(replicas=6)
    planners.plan_whole()
    assert homes() == {} and len(set(town.where(wide))) == 3
    cancel_job(town.user, wide)
    planners.rest()
    job = town.submit()
    planners.rest()
    (here,) = town.where(job)
    drain_node(root, Node.objects.get(name=here))
    others = [town.submit() for _ in range(3)]
    planners.rest()
    assert here not in [node for one in (job, *others) for node in town.where(one)]
    assert Job.objects.filter(state="running").count() == 4
    sound([job, *others])


def test_few_are_placed_at_once(
    town: Town, planners: Planners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "FEW", 2)
    jobs = [town.submit(), town.submit()]
    planners.plan_whole()
    assert homes() == {} and all(map(town.where, jobs))


def test_what_a_cluster_finds_no_place_for_is_placed_by_the_whole(
    town: Town, planners: Planners
) -> None:
    job = town.submit(replicas=2)
    planners.plan_whole()
    ((_, cluster),) = homes().items()
    Node.objects.filter(cluster=cluster).update(cordoned=True)
    planners.plan_in(cluster)
    assert homes() == {job.id: ""}
    planners.plan_whole()
    assert homes() == {} and town.where(job)[0][0] != cluster
    planners.rest()
    sound([job])


def test_whoever_may_not_run_any_more_is_called_back(town: Town, planners: Planners) -> None:
    jobs = [town.submit() for _ in range(2)]
    planners.plan_whole()
    limit(1)
    planners.plan_whole()
    assert set(homes()) == {jobs[0].id}
    jobs[1].refresh_from_db()
    assert jobs[1].reason == "quota"
    planners.rest()
    assert town.where(jobs[0]) and not town.where(jobs[1])


def test_who_was_placed_in_the_same_moment_is_not_planned_around(
    town: Town, planners: Planners
) -> None:
    """The tenant's one device goes to the first, although the whole meant to call it back."""
    limit(1)
    sent = town.submit()
    planners.plan_whole()
    better = town.submit("premium")
    fleet = planners.fleet()
    decided = planner.plan(fleet.observe(), live_policy())
    planners.plan_in(homes()[sent.id])
    fleet.enact(decided)
    assert town.where(sent) and not town.where(better)
    assert len(seats()) == 1


def test_called_back_before_the_cluster_acts(town: Town, planners: Planners) -> None:
    limit(1)
    sent = town.submit()
    planners.plan_whole()
    cluster = homes()[sent.id]
    part = Neighbourhood(planners.of[cluster][0], town.now)
    decided = planner.plan(part.observe(), placing(live_policy()))
    better = town.submit("premium")
    planners.plan_whole()
    part.enact(decided)
    assert not town.where(sent)
    planners.rest()
    assert town.where(better) and len(seats()) == 1


def test_of_two_that_promise_a_device_only_the_first_does(town: Town, planners: Planners) -> None:
    """Both planned for the same free devices, neither knew of the other."""
    wide = town.submit(replicas=8)
    fleet = planners.fleet()
    decided = planner.plan(fleet.observe(), live_policy())
    small = town.submit()
    Job.objects.filter(pk=small.pk).update(home="a")
    planners.plan_in("a")
    fleet.enact(decided)
    assert town.where(small) and not town.where(wide)
    sound([wide, small])


def test_a_node_that_changes_its_cluster_is_not_promised_by_the_old_one(
    town: Town, planners: Planners, root: User
) -> None:
    job = town.submit(replicas=4)
    planners.plan_whole()
    cluster = homes()[job.id]
    part = Neighbourhood(planners.of[cluster][0], town.now)
    decided = planner.plan(part.observe(), placing(live_policy()))
    place_node(root, Node.objects.get(name=f"{cluster}2"), cluster="ab".replace(cluster, ""))
    part.enact(decided)
    assert not town.where(job) and homes() == {job.id: ""}
    planners.rest()
    assert town.where(job)


def test_paused_while_it_was_sent(town: Town, planners: Planners) -> None:
    job = town.submit()
    planners.plan_whole()
    pause_job(town.user, job)
    for cluster in "ab":
        planners.plan_in(cluster)
    assert not town.where(job)
    planners.plan_whole()
    assert homes() == {}
    resume_job(town.user, job)
    for cluster in "ab":
        planners.plan_in(cluster)
    assert not town.where(job), "nobody sent it since"
    planners.rest()
    assert town.where(job)


def test_turned_off_all_come_back(town: Town, planners: Planners, root: User) -> None:
    jobs = [town.submit() for _ in range(4)]
    planners.plan_whole()
    part = Neighbourhood(planners.of["a"][0], town.now)
    decided = planner.plan(part.observe(), placing(live_policy()))
    late = planners.fleet()
    late.observe()
    set_policy(root, "", {})
    assert homes() == {}
    part.enact(decided)
    assert seats() == []
    late.enact(planner.plan(observe(town.now), live_policy()))
    assert homes() == {}
    town.rest()
    assert all(map(town.where, jobs))


def test_turns_of_the_whole_and_of_clusters(town: Town, planners: Planners) -> None:
    jobs = [town.submit() for _ in range(4)]
    take_turn(reconciling=True)
    assert len(homes()) == 4
    with turn(turn_in("a")) as mine:
        assert mine is not None
        take_turn_in("a")
        assert "a" in homes().values(), "another has the turn"
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    holder = f"{socket.gethostname()}:{gone.pid}"
    later = timezone.now() + timedelta(minutes=1)
    Lease.objects.filter(name=turn_in("a")).update(holder=holder, until=later)
    for cluster in "ab":
        take_turn_in(cluster)
    assert homes() == {} and all(map(town.where, jobs))


def test_a_look_at_a_cluster_is_its_share_of_a_look_at_the_whole(
    town: Town, planners: Planners
) -> None:
    dice, jobs = random.Random(3), list[Job]()
    watches = {name: ClusterWatch(name) for name in "ab"}
    for _ in range(10):
        happen(town, dice, jobs)
        Node.objects.filter(name__startswith="x").update(cluster=dice.choice("ab"))
        town.pass_time(dice.choice((1, 700)))
        now = town.now
        whole = observe(now)
        at = {job_id(id): home for id, home in homes().items()}
        for name, watch in watches.items():
            seen, part = told(watch.observe(now)), told(share(whole, at, name))
            assert plain(seen) == plain(part)
        dice.choice((planners.plan_whole, lambda: planners.plan_in("a"), town.cycle))()
        for puppet in town.puppets.values():
            puppet.step()


def plain(snapshot: planner.Snapshot) -> Any:
    """Nodes and jobs, without what only matters to who disturbs running jobs."""
    return snapshot.nodes, [replace(job, matrix=None) for job in snapshot.jobs]


def test_a_cluster_reads_nothing_of_the_others(town: Town, planners: Planners) -> None:
    planners.rest()
    watch = planners.of["a"][0]
    before = watch.observe(town.now)
    Node.objects.filter(name="b1").update(cordoned=True)
    town.submit()
    after = watch.observe(town.now)
    assert [node.id for node in after.nodes] == ["a1", "a2"]
    assert after.nodes is before.nodes and after.jobs is before.jobs


def test_all_planners_at_once(town: Town, planners: Planners) -> None:
    """Two workers take whatever turn there is while jobs come and go, within a limit."""
    limit(6)
    jobs = [town.submit(("basic", "premium")[index % 2]) for index in range(7)]
    workers = [planners, Planners(town)]
    for index in range(4):
        jobs.append(town.submit(replicas=2))
        cancel_job(town.user, jobs[index])
        at_once(
            lambda: take_turn(reconciling=True),
            *[lambda w=worker, c=c: w.plan_in(c) for worker in workers for c in "ab"],
            *[puppet.step for puppet in list(town.puppets.values())[::2]],
        )
        sound(jobs)
        assert len(seats()) <= 6
    planners.rest()
    sound(jobs)
    assert len(seats()) in (5, 6) and homes() == {}
    assert set(Job.objects.filter(state="waiting").values_list("reason", flat=True)) == {"quota"}
