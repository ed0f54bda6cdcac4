"""CPUs and memory re-split while a simulation runs."""

from pathlib import Path

import pytest

from scheduler.planner.sensitivity import Host
from scheduler.simulator.arrivals import Trace
from scheduler.simulator.fleets import Fleet, node, pool
from scheduler.simulator.measures import measure
from scheduler.simulator.splitting import Sensitivity, UnreadableProfilesError, read_profiles
from tests.simulator.scenes import ends, play, scene

HEADER = (
    "model,iteration_s_at_proportional_share,batch,cpus,memory_gb,speedup_over_proportional_share"
)
PROFILES = """
hungry,0.5,512,1,20,0.4
hungry,0.5,512,3,20,1.0
hungry,0.5,512,5,20,1.5
frugal,0.1,20,1,20,1.0
frugal,0.1,20,3,20,1.0
frugal,0.1,20,5,20,1.0
"""
HOSTS = (Host(id="h", gpus=2, cpus=6, memory=100e9),)


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    path = tmp_path / "profiles.csv"
    path.write_text(HEADER + PROFILES)
    return path


def played(profiles: Path, allocator: str, fleet: Fleet, policy: str):
    matrices, _ = read_profiles(profiles)
    trace = scene("0 30 1", model="hungry").arrivals + scene("0 30 1", model="frugal").arrivals
    sensitivity = Sensitivity(
        matrices=matrices, allocator=allocator, hosts=() if policy == "fifo" else HOSTS
    )
    return play(Trace(name="two", arrivals=trace), fleet, policy, sensitivity=sensitivity)


def test_seconds_an_iteration_and_matrices_come_from_the_profiles(profiles: Path):
    matrices, seconds = read_profiles(profiles)
    assert seconds == {"hungry": 0.5, "frugal": 0.1}
    assert matrices["hungry"].best().cpus == 5
    profiles.write_text(HEADER + "\nhungry,x,1,1,1,1\n")
    with pytest.raises(UnreadableProfilesError, match="line 2"):
        read_profiles(profiles)


@pytest.mark.parametrize("allocator", ["proportional", "tune", "opt"])
def test_surplus_makes_the_hungry_faster_and_nobody_slower(profiles: Path, allocator: str):
    if allocator == "opt":
        pytest.importorskip("scipy")
    hungry, frugal = ends(played(profiles, allocator, pool(2), "pool-fifo"))
    assert frugal == pytest.approx(30)
    assert hungry == pytest.approx(30 if allocator == "proportional" else 20)


def test_on_real_nodes_a_job_is_split_where_it_sits(profiles: Path):
    fleet = Fleet(name="f", nodes=(node("n", 2, cpus=6, memory=100 * 10**9),))
    result = played(profiles, "tune", fleet, "fifo")
    assert ends(result) == [pytest.approx(20), pytest.approx(30)]
    assert measure(result)["finished"] == 2
