"""Harm at random while jobs are moved: ``python -m tests.benchmarks.chaos --json``.

Two services over several replicas are moved, resized and checkpointed at random, while agents,
portal, workers and broker are killed with signal 9 and hosts' wires are cut, some for longer than
the lease. In the end all is mended. ``lost_jobs``: jobs that do not go on then. ``ranks_twice``:
ranks that computed in two places by turns, by the times that each wrote into its workspace.
``wrong_lines``: printed states that an undisturbed run would not have. ``leaked``: containers,
control groups, interfaces and mounts that are left when the jobs were cancelled.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from portal.demo.fleet import ENDED, Fleet, NotSoError
from tests.fleets.conftest import HOSTS
from tests.fleets.fleet import LEASE_S, HostFleet
from tests.fleets.service import Service, Ticks
from tests.product import wait_for

PARTS = ("portal", "worker-cycle", "worker-work", "broker", *HOSTS)
ACTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("migrate", {}),
    ("resize", {"devices": 1}),
    ("resize", {"devices": 2}),
    ("checkpoint", {}),
)
AGAIN_WITHIN_S = 240.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    parser.add_argument("--operations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    figures = measure(operations=told.operations, seed=told.seed)
    print(json.dumps(figures, indent=None if told.json else 2))


def measure(*, operations: int = 100, seed: int = 1) -> dict[str, Any]:
    """Start a fleet, harm it, and answer what came of it."""
    chance = random.Random(seed)
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="tidepool-") as name,
        HostFleet(Path(name) / "home", HOSTS) as hosts,
    ):
        fleet = Fleet(hosts.url, hosts.token("ana"), "vision")
        with contextlib.closing(fleet):
            services = [Service(fleet, replicas=2, fewest_devices=1) for _ in range(2)]
            for service in services:
                service.wait_for_step(3)
            with watching(hosts, services) as ticks:
                done = harm(hosts, services, operations, chance)
                mend(hosts)
                lost = [said(service) for service in services if not goes_on(service)]
            figures = {
                "operations": sum(done.values()),
                "harm": dict(sorted(done.items())),
                "lost_jobs": len(lost),
                "lost": lost,
                "ranks_twice": sum(len(each.overlaps()) for each in ticks),
                "wrong_lines": sum(len(service.wrong()) for service in services),
                "interruptions": interruptions(services),
                "leaked": len(left := leaked(hosts, services)),
                "left": left[:10],
            }
            for each in ticks:
                each.close()
    return {**figures, "seconds": round(time.monotonic() - began)}


@contextlib.contextmanager
def watching(hosts: HostFleet, services: list[Service]) -> Iterator[list[Ticks]]:
    """Take hold of every replica's file of times as soon as it is there."""
    ticks = [Ticks(hosts, service.job) for service in services]
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for each in ticks:
                each.look()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield ticks
    finally:
        over.set()
        thread.join()


def harm(
    hosts: HostFleet, services: list[Service], operations: int, chance: random.Random
) -> collections.Counter[str]:
    """Ask for something and break something, so many times; answer what was broken."""
    done: collections.Counter[str] = collections.Counter()
    for _ in range(operations):
        act, told = chance.choice(ACTS)
        # Refused where the job or the portal is not in a state for it just now.
        with contextlib.suppress(httpx.HTTPError, AssertionError):
            chance.choice(services).steer(act, told)
        time.sleep(chance.uniform(0.0, 2.0))
        part = chance.choice([*PARTS, "cut", "cut"])
        if part == "cut":
            done["cut" if cut(hosts, chance) else "cut for longer than the lease"] += 1
        else:
            done["agent" if part in HOSTS else part] += 1
            hosts.kill(part)
        time.sleep(chance.uniform(0.0, 2.0))
    return done


def cut(hosts: HostFleet, chance: random.Random) -> bool:
    """Cut a host off for a while; False when it was for longer than the lease."""
    host = hosts.host(chance.choice(HOSTS))
    short = chance.random() < 0.7
    host.cut()
    time.sleep(chance.uniform(0.2, 5.0) if short else LEASE_S * 1.5)
    host.join()
    return short


def mend(hosts: HostFleet) -> None:
    for host in hosts.switch.hosts.values():
        host.join()
    wait_for(hosts.healthy, "the fleet to be healthy", AGAIN_WITHIN_S)


def goes_on(service: Service) -> bool:
    """Whether it computes again before long."""
    try:
        told = wait_for(
            lambda: (job := service.told())["state"] in {"running", *ENDED} and job,
            "the job to run",
            AGAIN_WITHIN_S,
        )
        if told["state"] in ENDED:
            return False
        service.wait_for_more()
    except (AssertionError, NotSoError):
        return False
    return True


def said(service: Service) -> str:
    """What is told of a job that does not go on."""
    told, last = service.told(), service.fleet.placements(service.job)[-1:]
    return f"{told['state']}: {told['error']} {told['detail']} {told['sentence']} {last}"


def interruptions(services: list[Service]) -> dict[str, int]:
    """How often the jobs were interrupted, by kind; those that were called off apart."""
    fates = [fate for service in services for fate in service.fates()]
    kinds = ["called off" if fate["called_off"] else str(fate["kind"]) for fate in fates]
    return dict(sorted(collections.Counter(kinds).items()))


def leaked(hosts: HostFleet, services: list[Service]) -> list[str]:
    """Cancel the jobs and answer what stays on the hosts."""
    for service in services:
        with contextlib.suppress(NotSoError):
            service.fleet.cancel(service.job)
    with contextlib.suppress(AssertionError):
        wait_for(lambda: not hosts.leftovers(), "hosts to be empty", AGAIN_WITHIN_S)
    return hosts.leftovers()


if __name__ == "__main__":
    main()
