"""Fleets from a name and from a file."""

from pathlib import Path

import pytest

from scheduler.planner import Node
from scheduler.simulator.fleet_file import UnreadableFleetError, fleet_named, read_fleet
from scheduler.simulator.fleets import Absence, Fleet, Links, describe, node
from tests.simulator.scenes import ends, play, scene

FLEET = """
name = "two halls"

[[nodes]]
name = "a"
count = 4
gpus = 8
kind = "A100"
gpu_memory_gb = 40
cpus = 96
memory_gb = 512
rack_size = 2
cluster = "east-1"
region = "east"
partitions = ["research"]

[[nodes]]
name = "b"
gpus = 4
kind = "H100"
cluster = "west-1"
region = "west"

[[tenants]]
id = "vision"
weight = 2
[tenants.quotas.A100]
reserved = 16
borrow = 8

[[tiers]]
id = "gold"
rank = 1
promise = 0.9

[links]
rack = 25
world = 1

[[capacity]]
nodes_like = "a-*"
away_from = 3600
until = 7200
every = 86400
times = 2
share = 0.5

[failures]
mean_between_s = 2592000
mean_repair_s = 3600
log = "failures.csv"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "failures.csv").write_text("node,down_at,up_at\nb,10,20\n")
    path = tmp_path / "fleet.toml"
    path.write_text(FLEET)
    return path


def test_a_file_gives_nodes_in_racks_clusters_and_regions(path: Path):
    fleet = read_fleet(path)
    assert fleet.devices == 36
    assert fleet.largest_node == 8
    first, second, third, _, last = fleet.nodes
    assert (first.id, last.id) == ("a-0000", "b")
    assert first.rack == second.rack != third.rack
    assert first.partitions == {"research"}
    assert first.devices[0].memory == 40 * 10**9
    assert describe(fleet)["kinds"] == {"A100": 32, "H100": 4}


def test_tenants_tiers_and_links_come_from_the_file(path: Path):
    fleet = read_fleet(path)
    assert fleet.tenants[0].quotas["A100"].reserved == 16
    assert [tier.id for tier in fleet.tiers] == ["gold"]
    first, second, third, _, last = fleet.nodes
    assert fleet.links.between(first, second) == 25e9
    assert fleet.links.between(first, third) == Links().cluster
    assert fleet.links.between(first, last) == 1e9


def test_windows_repeat_are_announced_and_join_the_log_of_failures(path: Path):
    outages = read_fleet(path).outages
    assert [each.node for each in outages if each.at == 10] == ["b"]
    drained = [each for each in outages if each.absence is Absence.DRAINING]
    assert [each.at for each in drained] == [3000, 3000, 89400, 89400]
    assert {each.node for each in drained} == {"a-0000", "a-0001"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("gpus = 4", "gups = 4"), "gups"),
        (('name = "b"', 'name = "a-0000"'), "same name"),
        (("[links]", "[wires]"), "wires"),
        (('nodes_like = "a-*"', 'nodes_like = "z-*"'), "z-"),
        (("[[tiers]]", "[[tiers"), "fleet.toml"),
    ],
)
def test_a_mistake_is_named(path: Path, change: tuple[str, str], complaint: str):
    path.write_text(FLEET.replace(*change))
    with pytest.raises(UnreadableFleetError, match=complaint):
        read_fleet(path)


def test_short_names_for_pools_and_grids():
    assert fleet_named("pool:128").devices == 128
    assert len(fleet_named("pool:128").nodes) == 1
    grid = fleet_named("16x8")
    assert (len(grid.nodes), grid.devices) == (16, 128)
    with pytest.raises(UnreadableFleetError, match="neither pool:N"):
        fleet_named("many")


def test_a_csv_lists_nodes_in_our_columns_or_openbs(tmp_path: Path):
    own, openb = tmp_path / "own.csv", tmp_path / "openb.csv"
    own.write_text("name,gpus,kind,cpus,memory_gb\na,8,A100,96,512\nb,0,,8,\n")
    openb.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,1,1,0,\n")
    assert describe(read_fleet(own))["kinds"] == {"A100": 8}
    (node,) = read_fleet(openb).nodes
    assert (node.cpus, node.memory, len(node.devices)) == (64.0, 262144 * 2**20, 2)
    own.write_text("name,gpus\na,8\na,8\n")
    with pytest.raises(UnreadableFleetError, match=r"line 3: each node needs a name"):
        read_fleet(own)


@pytest.mark.parametrize(
    ("log", "complaint"),
    [
        ("node,down_at,up_at\nzz,1,2\n", "line 2: there is no node 'zz'"),
        ("node,down_at\na,1\n", "line 2: up_at is empty"),
        ("node,down_at,up_at\na,5,5\n", "does not lie after"),
    ],
)
def test_a_log_of_failures_is_checked_line_by_line(tmp_path: Path, log: str, complaint: str):
    (tmp_path / "log.csv").write_text(log)
    path = tmp_path / "fleet.toml"
    path.write_text('[[nodes]]\nname = "a"\ngpus = 2\n[failures]\nlog = "log.csv"\n')
    with pytest.raises(UnreadableFleetError, match=complaint):
        read_fleet(path)


def test_a_job_that_takes_several_kinds_runs_on_any_of_them_and_on_no_other():
    def here(name: str, kind: str, *partitions: str) -> Node:
        return node(name, 1, kind=kind, partitions=frozenset(partitions))

    nodes = (here("a", "A100"), here("b", "H100", "lab"), here("t", "T4", "lab"))
    fleet = Fleet(name="three kinds", nodes=nodes)
    either = scene("0 10 1", "0 10 1", "0 10 1", device_kinds=("A100", "H100"))
    assert ends(play(either, fleet, "fifo")) == [10.0, 10.0, 20.0]
    inside = scene("0 10 1", "0 10 1", device_kinds=("A100", "H100"), partition="lab")
    assert ends(play(inside, fleet, "fifo")) == [10.0, 20.0]
