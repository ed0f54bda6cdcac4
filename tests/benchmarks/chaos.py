"""Harm at random while jobs are moved: ``python -m tests.benchmarks.chaos --json``.

Jobs over several replicas are moved, resized, checkpointed, paused and cancelled at random, while
agents, portal, workers, beat and broker are killed with signal 9, hosts lose their wires (some for
longer than the lease) or their power, portal, broker or an agent hang, and the store's disk is
full. An operation counts when the portal has taken it. In the end all is mended.

``lost_jobs``: jobs that have ended though nobody cancelled them, or do not go on then.
``ranks_twice``: ranks that computed in two places by turns, by the times that each wrote into its
workspace. ``wrong_lines``: printed states that an undisturbed run would not have. ``leaked``:
containers, control groups, interfaces and mounts on the hosts, chunks and manifests in the store,
and processes, that are left when all jobs were cancelled. Whatever is not zero comes with what is
needed to understand it.

``endings`` counts how the operations ended, ``not_done`` tells of each that was not done;
``stood`` counts the times that jobs stood still for, pauses aside, with the longest of them;
``complaints`` are errors that the parts have logged. ``--keep FOLDER`` keeps their logs, the rows
and the whole story.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx

from portal.demo.fleet import ENDED, Fleet, NotSoError
from tests.fleets.conftest import HOSTS
from tests.fleets.disk import SmallDisk
from tests.fleets.endings import Asked, Ended, Stood, clock, endings, standstills
from tests.fleets.evidence import complaints, evidence
from tests.fleets.fleet import HostFleet
from tests.fleets.harm import Harm
from tests.fleets.remains import stray_chunks, stray_processes
from tests.fleets.service import Service, Ticks
from tests.product import wait_for

ACTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("migrate", {}),
    ("migrate", {}),
    ("resize", {"devices": 1}),
    ("resize", {"devices": 2}),
    ("checkpoint", {}),
    ("checkpoint", {}),
    ("pause", {}),
    ("cancel", {}),
)
PAUSE_S = (0.0, 1.5)
"""Between an operation and the harm, and between the harm and the next operation."""
TAKEN_WITHIN_S = 20.0
AGAIN_WITHIN_S = 240.0
JOBS = 2
PACE = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    parser.add_argument("--operations", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1200.0, help="begin no operation later")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for logs, rows and the story")
    told = parser.parse_args()
    figures = measure(
        operations=told.operations, seconds=told.seconds, seed=told.seed, keep=told.keep
    )
    print(json.dumps(figures, indent=None if told.json else 2))


def measure(
    *, operations: int = 100, seconds: float = 1200.0, seed: int = 1, keep: Path | None = None
) -> dict[str, Any]:
    """Start a fleet, harm it, and answer what came of it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidepool-") as name:
        home = Path(name) / "home"
        with SmallDisk(home / "store") as disk, HostFleet(home, HOSTS) as hosts:
            fleet = Fleet(hosts.url, hosts.token("ana"), "vision")
            chance = random.Random(seed)
            with contextlib.closing(fleet):
                ordeal = Ordeal(hosts, fleet, Harm(hosts, disk, chance), chance)
                with ordeal.watching():
                    ordeal.endure(operations, began + seconds)
                figures = ordeal.figures()
                if keep is not None:
                    ordeal.keep(keep)
        left = stray_processes(home)
    figures["leaked"] += len(left)
    figures["left"] += left
    figures["load"] = round(os.getloadavg()[1], 1)
    return {"seed": seed, **figures, "seconds": round(time.monotonic() - began)}


class Ordeal:
    """Jobs that are asked for this and that while harm is done to their fleet."""

    def __init__(self, hosts: HostFleet, fleet: Fleet, harm: Harm, chance: random.Random) -> None:
        self.hosts, self.fleet, self.harm, self.chance = hosts, fleet, harm, chance
        self.asked: list[Asked] = []
        self.refused = 0
        self.trouble = ""
        """What the fleet itself did not come back from."""
        self.story: list[str] = []
        self.jobs: list[Service] = []
        self.cancelled: list[Service] = []
        self.lost: list[Service] = []
        self.ticks: dict[int, Ticks] = {}
        for _ in range(JOBS):
            self._submit()

    def _submit(self) -> None:
        service: Service = wait_for(self._taken, "a job to be taken", AGAIN_WITHIN_S)
        self.ticks[service.job] = Ticks(self.hosts, service.job)
        self.jobs.append(service)
        self._tell(f"job {service.job} submitted")

    def _taken(self) -> Service | None:
        with contextlib.suppress(NotSoError):
            return Service(self.fleet, replicas=2, fewest_devices=1, pace=PACE)
        return None

    def _tell(self, what: str) -> None:
        self.story.append(f"{clock(time.time())} {what}")
        print(self.story[-1], file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Take hold of every replica's file of times as soon as it is there."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.1):
                for each in list(self.ticks.values()):
                    each.look()

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def endure(self, operations: int, until: float) -> None:
        """Go through all of it, then see who goes on."""
        try:
            self.go_through(operations, until)
            self.look_back()
        except (AssertionError, NotSoError, httpx.HTTPError) as error:
            self.trouble = str(error)
            self.harm.mend()

    def go_through(self, operations: int, until: float) -> None:
        """Ask for something and break something, so many times."""
        while len(self.asked) < operations and time.monotonic() < until:
            self._ask()
            time.sleep(self.chance.uniform(*PAUSE_S))
            self._tell(f"  {self.harm.strike()}")
            time.sleep(self.chance.uniform(*PAUSE_S))

    def _ask(self) -> None:
        """One operation on one of the jobs; a paused one can only be resumed or cancelled."""
        act, told = self.chance.choice(ACTS)
        service = self.chance.choice(self.jobs)
        if self._is_lost(service):
            return
        until, said = time.monotonic() + TAKEN_WITHIN_S, ""
        while time.monotonic() < until:
            with contextlib.suppress(httpx.HTTPError):
                if act != "cancel" and service.told()["state"] == "paused":
                    act, told = "resume", {}
                answer = self.fleet.http.post(f"jobs/{service.job}/{act}/", json=told)
                if answer.status_code == 202:
                    self.asked.append(Asked(job=service.job, act=act, told=told, at=time.time()))
                    self._tell(f"{len(self.asked)}: job {service.job} {act} {told or ''}")
                    if act == "cancel":
                        self.jobs.remove(service)
                        self.cancelled.append(service)
                        self._submit()
                    return
                said = answer.text[:200]
            time.sleep(0.2)
        self.refused += 1
        self._tell(f"job {service.job} {act} not taken: {said}")

    def _is_lost(self, service: Service) -> bool:
        """Whether it has ended by itself; another one takes its place then."""
        with contextlib.suppress(httpx.HTTPError, NotSoError):
            if service.told()["state"] in ENDED:
                self.jobs.remove(service)
                self.lost.append(service)
                self._tell(f"job {service.job} is lost")
                self._submit()
                return True
        return False

    def look_back(self) -> None:
        """Mend everything, and see who goes on."""
        self.harm.mend()
        wait_for(self.hosts.healthy, "the fleet to be healthy", AGAIN_WITHIN_S)
        self.lost += [service for service in self.jobs if not goes_on(service)]

    def figures(self) -> dict[str, Any]:
        """End all that runs and answer the counts."""
        gone = [service for service in self.lost if service not in self.jobs]
        everyone = [*self.jobs, *self.cancelled, *gone]
        twice = [line for each in self.ticks.values() for line in each.overlaps()]
        wrong = [line for service in everyone for line in service.wrong()]
        lost = {service.job: said(service) for service in self.lost}
        ended, stood = self._told_of(everyone)
        left = leaked(self.hosts, self.fleet)
        found = {
            "trouble": self.trouble,
            "operations": len(self.asked),
            "taken": counts(each.act for each in self.asked),
            "not_taken": self.refused,
            "harm": counts(self.harm.done.elements()),
            "jobs": len(everyone),
            "lost_jobs": len(lost),
            "lost": lost,
            "ranks_twice": len(twice),
            "wrong_lines": len(wrong),
            "wrong": [*twice, *wrong][:10],
            "interruptions": interruptions(everyone),
            "endings": counts(f"{each.asked.act}: {each.how}" for each in ended),
            "not_done": [str(each) for each in ended if each.how != "done"],
            "slowest": slowest(ended),
            "stood": standing(stood),
            "complaints": complaints(self.hosts),
            "leaked": len(left),
            "left": left[:10],
        }
        if self.trouble or lost or twice or wrong or left:
            found["story"] = self.story
            found["evidence"] = evidence(self.hosts, everyone)
        for each in self.ticks.values():
            each.close()
        return found

    def _told_of(self, services: list[Service]) -> tuple[list[Ended], list[Stood]]:
        """How all that was asked of these jobs ended, and when they stood still."""
        ended: list[Ended] = []
        stood: list[Stood] = []
        for service in services:
            asked = [each for each in self.asked if each.job == service.job]
            fates = service.fates()
            ended += endings(asked, fates, service.cuts())
            stood += standstills(service.job, self.ticks[service.job].times(), fates)
        return sorted(ended, key=lambda each: each.asked.at), stood

    def keep(self, folder: Path) -> None:
        """Copy what the parts have logged and the rows, and write down the story."""
        shutil.copytree(self.hosts.home / "log", folder / "log", dirs_exist_ok=True)
        for path in self.hosts.home.glob("*.sqlite3*"):
            shutil.copy(path, folder)
        (folder / "story").write_text("\n".join(self.story) + "\n")


def goes_on(service: Service) -> bool:
    """Whether it computes again before long; one that is paused is resumed."""

    def runs() -> bool:
        state = service.told()["state"]
        if state == "paused":
            service.steer("resume", {})
        return state in {"running", *ENDED}

    try:
        wait_for(runs, "the job to run", AGAIN_WITHIN_S)
        if service.told()["state"] in ENDED:
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
    return counts(kinds)


def counts(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(collections.Counter(words).items()))


def slowest(ended: list[Ended], most: int = 5) -> list[str]:
    """Answer the operations that took longest until they were done."""
    done = [each for each in ended if each.how == "done" and each.seconds is not None]
    return [str(each) for each in sorted(done, key=lambda each: -(each.seconds or 0.0))[:most]]


def standing(stood: list[Stood], most: int = 8) -> dict[str, Any]:
    """Answer how often and how long jobs stood still, and the longest times."""
    seconds = sorted(each.seconds for each in stood)
    longest = sorted(stood, key=lambda each: -each.seconds)[:most]
    return {
        "times": len(seconds),
        "median_s": round(statistics.median(seconds), 1) if seconds else 0.0,
        "longest_s": round(seconds[-1], 1) if seconds else 0.0,
        "longest": [str(each) for each in longest],
    }


def leaked(hosts: HostFleet, fleet: Fleet) -> list[str]:
    """Cancel all jobs and answer what stays on the hosts and in the store."""
    for job in fleet.live():
        with contextlib.suppress(NotSoError):
            fleet.cancel(job)
    with contextlib.suppress(AssertionError):
        wait_for(lambda: not hosts.leftovers(), "hosts to be empty", AGAIN_WITHIN_S)
    return [*hosts.leftovers(), *stray_chunks(hosts)]


if __name__ == "__main__":
    main()
