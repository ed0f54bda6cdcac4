"""A training's containers on two hosts, dumped and restored by runc alone, all side by side."""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agents.choice import choose_driver
from agents.config import read_config
from agents.containers import netns
from agents.drivers.base import Driver, Task
from agents.protocol import Network
from tests.fleets.fleet import HostFleet
from tests.fleets.hosts import Host
from tests.fleets.training import DDP
from tests.product import wait_for

NUMBER = 0xFFFF01
REPLICAS = 4


class Rank:
    """One replica without a portal, on the host that it would be on."""

    def __init__(self, fleet: HostFleet, folder: Path, rank: int) -> None:
        near, far = list(fleet.switch.hosts.values())[:2]
        hosts = [near] * (REPLICAS // 2) + [far] * (REPLICAS // 2)
        self.host = hosts[rank]
        peers = {
            f"10.77.0.{other + 2}": host.address
            for other, host in enumerate(hosts)
            if host is not self.host
        }
        self.images = folder / f"images-{rank}"
        self.driver = driver_of(fleet, self.host, folder)
        network = Network(number=NUMBER, address=f"10.77.0.{rank + 2}/16", peers=peers)
        self.task = task_of(folder, rank, network)

    def at_home(self, verb: Callable[..., Any], *told: Any) -> Any:
        return netns.inside(self.host.place, lambda: verb(self.task, *told))

    def steps(self) -> int:
        output = self.task.output
        return output.read_bytes().count(b"\nstep ") if output.exists() else 0


def driver_of(fleet: HostFleet, host: Host, folder: Path) -> Driver:
    told = {
        "TIDEPOOL_PORTAL": "http://127.0.0.1:1",
        "TIDEPOOL_NODE": host.name,
        "TIDEPOOL_NODE_TOKEN": "none",
        "TIDEPOOL_AGENT_STATE": str(folder / host.name),
        "TIDEPOOL_NODE_PREFIX": fleet.environment["TIDEPOOL_NODE_PREFIX"],
        "TIDEPOOL_DRIVER": "container",
        "TIDEPOOL_UNDERLAY": host.address,
    }
    return choose_driver(read_config([], told))


def task_of(folder: Path, rank: int, network: Network) -> Task:
    home = folder / "replicas" / str(rank)
    (home / "workspace").mkdir(parents=True)
    shutil.copy(DDP / "train.py", home / "workspace")
    return Task(
        key=f"bare-{rank}",
        folder=home,
        output=home / "output",
        command=("python", "train.py", "--steps", "1000000", "--pace", "0.1"),
        environment={
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONUNBUFFERED": "1",
            "GLOO_SOCKET_IFNAME": "eth0",
            "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "10.77.0.2",
            "MASTER_PORT": "29500",
            "RANK": str(rank),
            "WORLD_SIZE": str(REPLICAS),
        },
        cpus=1.0,
        network=network,
    )


def bare_runc(fleet: HostFleet, times: int) -> float:
    """Answer the median seconds of checkpoint and restore together."""
    folder = fleet.home / "bare"
    folder.mkdir(mode=0o711)
    ranks = [Rank(fleet, folder, rank) for rank in range(REPLICAS)]
    try:
        for rank in ranks:
            rank.at_home(rank.driver.start)
        return statistics.median(once(ranks) for _ in range(times))
    finally:
        for rank in ranks:
            rank.at_home(rank.driver.stop, 0.0)
            rank.at_home(rank.driver.remove)
            rank.driver.close()


def once(ranks: list[Rank]) -> float:
    """Let them compute, then take and bring back their memory; the seconds of runc alone."""
    steps = ranks[0].steps()
    wait_for(lambda: ranks[0].steps() > steps + 3, "steps", 240)
    all_at_once(ranks, lambda rank: rank.at_home(rank.driver.freeze))
    for rank in ranks:
        shutil.rmtree(rank.images, ignore_errors=True)
    dumped = all_at_once(ranks, lambda rank: rank.at_home(rank.driver.dump, rank.images))
    all_at_once(ranks, lambda rank: rank.at_home(rank.driver.remove))
    restored = all_at_once(ranks, lambda rank: rank.at_home(rank.driver.restore, rank.images))
    all_at_once(ranks, lambda rank: rank.at_home(rank.driver.thaw))
    return dumped + restored


def all_at_once(ranks: list[Rank], act: Callable[[Rank], Any]) -> float:
    began = time.monotonic()
    with ThreadPoolExecutor(len(ranks)) as pool:
        list(pool.map(act, ranks))
    return time.monotonic() - began
