"""Facts change what they speak of and nothing else."""

from __future__ import annotations

from agents.protocol import Facts, Network, ReplicaFact, State, Want
from portal.actions.desired import desired_state
from portal.actions.facts import accept_facts
from portal.actions.steering import migrate_job
from tests.live.conftest import town
from tests.live.puppets import Town

__all__ = ["town"]


def test_a_fact_with_an_old_epoch_changes_nothing(town: Town) -> None:
    puppet = town.node("n1")
    job = town.submit()
    town.rest()
    old = ReplicaFact(job=job.id, rank=0, epoch=0, state=State.EXITED, exit_code=1)
    accept_facts(puppet.node.id, Facts(number=0, replicas=[old]))
    job.refresh_from_db()
    assert job.state == "running"


def test_a_node_speaks_for_itself_only(town: Town) -> None:
    town.node("n1", 1)
    other = town.node("n2", 1)
    job = town.submit()
    town.rest()
    (here,) = town.where(job)
    stranger = town.puppets["n1"] if here == "n2" else other
    lie = ReplicaFact(job=job.id, rank=0, epoch=1, state=State.EXITED, exit_code=1)
    accept_facts(stranger.node.id, Facts(number=0, replicas=[lie]))
    job.refresh_from_db()
    assert job.state == "running"


def test_desired_state_carries_the_world_and_the_secrets(town: Town) -> None:
    puppet = town.node("n1", 2)
    job = town.submit(replicas=2, environment={"LR": "0.1"}, secrets={"KEY": "s3cret"})
    town.cycle()
    state = desired_state(puppet.node.id)
    assert [d.rank for d in state.replicas] == [0, 1]
    second = state.replicas[1]
    assert second.hold
    assert second.launch is not None and second.network is not None
    assert second.launch.environment["RANK"] == "1"
    assert second.launch.environment["WORLD_SIZE"] == "2"
    assert second.launch.environment["MASTER_ADDR"] == "10.77.0.2"
    assert second.launch.environment["LR"] == "0.1"
    assert second.launch.secrets == {"KEY": "s3cret"}
    assert second.network.address == "10.77.0.3/16"
    assert second.network.number == job.placements.get().network_number


def test_a_placement_has_a_network_of_its_own_and_keeps_the_addresses(town: Town) -> None:
    """What a superseded replica still sends must reach none of those that took its place."""
    town.node("n1", 2)
    job = town.submit(replicas=2)
    town.rest()
    before = networks(town)
    town.node("n2", 2)
    migrate_job(town.user, job, "n2")
    town.rest()
    assert town.where(job) == ["n2", "n2"]
    after = networks(town)
    assert [network.address for network in after] == [network.address for network in before]
    assert len({network.number for network in before}) == 1
    assert len({network.number for network in before + after}) == 2


def test_a_start_that_is_held_up_says_why_until_it_runs(town: Town) -> None:
    puppet = town.node("n1", 1)
    job = town.submit()
    town.cycle()
    why = "Git could not get https://git.example.org/x.git: Connection refused"
    fact = ReplicaFact(job=job.id, rank=0, epoch=1, state=State.PREPARING, detail=why)
    accept_facts(puppet.node.id, Facts(number=0, replicas=[fact]))
    job.refresh_from_db()
    assert (job.state, job.sentence) == ("starting", f"n1: {why}")
    town.rest()
    job.refresh_from_db()
    assert (job.state, job.sentence) == ("running", "")


def test_a_repository_that_stays_away_is_tried_elsewhere_and_named_in_the_end(town: Town) -> None:
    for name in ("n1", "n2"):
        town.node(name, 1).fails[Want.RUNNING] = ("repository-unreachable", "Git: no route")
    job = town.submit()
    for _ in range(6):
        town.rest()
        town.pass_time(150)
    job.refresh_from_db()
    assert job.state == "failed"
    assert job.detail == "Given up after 4 failed starts. The last: Git: no route"


def networks(town: Town) -> list[Network]:
    """The networks of all replicas that should be anywhere, by rank."""
    states = [desired_state(puppet.node.id) for puppet in town.puppets.values()]
    wanted = sorted((d for state in states for d in state.replicas), key=lambda d: d.rank)
    return [desired.network for desired in wanted if desired.network is not None]
