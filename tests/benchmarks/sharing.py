"""What planners that share a fleet by cluster gain: ``python -m tests.benchmarks.sharing --json``.

The fleet of `observing.py` is written to a database. Each round some jobs end and as many of the
same sizes come, so that hundreds of those who wait find room. Either one worker plans the whole
until nobody else finds any, or two workers share the fleet by cluster; first all rounds of the one
kind, then all of the other, so that both know the fleet. ``alone_a_s`` and ``shared_a_s`` are
placements a second until 95 % were placed, ``gain`` is their ratio. ``whole_s`` is the worker's
clock for a turn of one planner, ``sending_s`` for one of the pass over the whole that sends what it
finds room for, ``cluster_s`` for one of a cluster's planner, each with how many jobs it found
places for (medians).
``workers_mb`` is what the two workers held.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from tests.benchmarks.observing import build, database, peak_mb, read_options, round_off

ROUNDS = 2
ENDED = 600
"""Jobs that end in each round, in a small fleet fewer."""
Turn = tuple[str, float, int]
"""Its kind, its seconds, and how many jobs it found places for."""
PLACING = dict.fromkeys(("preemption", "migration", "elasticity", "defragmentation"), False)


def main() -> None:
    options = read_options(__doc__ or "")
    match options.stage:
        case "build":
            setup()
            build(options, settled=True)
            bring_up_to_now()
        case "work":
            setup()
            work()
        case "measure":
            setup()
            print(json.dumps({"benchmark": "sharing"} | measure(options)))
        case _:
            with database(options.database) as url:
                for stage in ("build", "measure"):
                    run(stage, url).wait()


def run(stage: str, url: str, **pipes: Any) -> subprocess.Popen[str]:
    words = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.sharing", *sys.argv[1:]]
    environment = os.environ | {
        "TEST_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings",
        "TIDEPOOL_LOG": "ERROR",
    }  # fmt: skip
    return subprocess.Popen(
        [*words, "--url", url, "--stage", stage], env=environment, text=True, **pipes
    )


def setup() -> None:
    import logging

    import django

    django.setup()
    logging.disable(logging.WARNING)  # there is no broker


def bring_up_to_now() -> None:
    """Turns go by the clock: lay the fleet's past before this moment."""
    from django.db.models import F
    from django.utils import timezone

    from portal.models import Job, Promise, Tenant
    from tests.benchmarks.planner import NOW
    from tests.benchmarks.rows import moment

    passed = timezone.now() - moment(NOW)
    hours = passed - timedelta(seconds=passed.total_seconds() % 3600)
    names = ("submitted_at", "waiting_since", "started_at", "running_since", "accounted_at")
    Job.objects.update(**{name: F(name) + passed for name in names})
    Promise.objects.update(hour=F("hour") + hours)
    Tenant.objects.update(usage_at=F("usage_at") + passed)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Have workers place what finds room, some rounds alone and some together."""
    from django.db import connection

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    workers = [run("work", options.url, **pipes) for _ in range(2)]
    dice = random.Random(options.seed)
    choose(by_cluster=False)
    told(workers[:1])
    rates: dict[str, list[float]] = {"alone": [], "shared": []}
    turns: dict[str, list[tuple[float, int]]] = {"whole": [], "sending": [], "cluster": []}
    for kind, count in (("alone", 1), ("shared", 2)):
        choose(by_cluster=kind == "shared")
        for number in range(ROUNDS + 1):
            end_some(dice)
            found, rate = timed(workers[:count])
            if number:  # the first one is for what they do not know yet
                rates[kind].append(rate)
                for name in turns:
                    turns[name] += [
                        (seconds, many) for what, seconds, many in found if what == name
                    ]
    peaks = [finish(worker) for worker in workers]
    figures: dict[str, Any] = {"database": connection.vendor, "rounds": ROUNDS}
    for name, seen in turns.items():
        figures[f"{name}_turns"] = len(seen)
        figures[f"{name}_s"] = round_off(statistics.median([s for s, _ in seen] or [0.0]))
        figures[f"{name}_jobs"] = statistics.median([many for _, many in seen] or [0])
    alone, shared = (statistics.median(rates[kind]) for kind in ("alone", "shared"))
    return figures | {
        "alone_a_s": round(alone, 1), "shared_a_s": round(shared, 1),
        "gain": round(shared / alone, 2), "workers_mb": peaks,
    }  # fmt: skip


def choose(*, by_cluster: bool) -> None:
    """Only placements are compared: nobody is disturbed."""
    from portal.models import Settings

    changes = PLACING | {"by_cluster": by_cluster}
    Settings.objects.update_or_create(pk=1, defaults={"changes": changes})


def end_some(dice: random.Random) -> None:
    from django.utils import timezone

    from portal.models import Job, PlacedReplica, Placement

    running = list(Job.objects.filter(state="running").order_by("id").values_list("id", flat=True))
    over, now = dice.sample(running, min(ENDED, len(running) // 8)), timezone.now()
    placements = Placement.objects.filter(job__in=over)
    PlacedReplica.objects.filter(placement__in=placements).update(state="exited", exit_code=0)
    placements.update(state="ended", ended_at=now)
    fresh = list(Job.objects.filter(id__in=over))
    Job.objects.filter(id__in=over).update(state="succeeded", ended_at=now, running_since=None)
    for job in fresh:
        job.pk, job.state, job.epoch, job.delivered, job.entitled = None, "waiting", 0, 0.0, 0.0
        job.submitted_at = job.waiting_since = now
        job.started_at = job.running_since = job.accounted_at = None
    Job.objects.bulk_create(fresh)


def timed(workers: list[subprocess.Popen[str]]) -> tuple[list[Turn], float]:
    """The turns of workers, and how many jobs a second they placed until nearly all were."""
    began, before, seen = time.perf_counter(), started(), [(0.0, 0)]
    with ThreadPoolExecutor(1) as pool:
        turns = pool.submit(told, workers)
        while not turns.done():
            time.sleep(0.1)
            seen.append((time.perf_counter() - began, started() - before))
    nearly = 0.95 * seen[-1][1]
    seconds, many = next((at, count) for at, count in seen if count >= nearly)
    return turns.result(), many / seconds if seconds else 0.0


def started() -> int:
    from portal.models import Job

    return Job.objects.filter(state="starting").count()


def told(workers: list[subprocess.Popen[str]]) -> list[Turn]:
    """Have workers go on until there is nothing to do; answers their turns."""
    for worker in workers:
        assert worker.stdin is not None
        print("go", file=worker.stdin, flush=True)
    found: list[Turn] = []
    for worker in workers:
        assert worker.stdout is not None
        found += [
            (kind, seconds, many) for kind, seconds, many in json.loads(worker.stdout.readline())
        ]
    return found


def finish(worker: subprocess.Popen[str]) -> int:
    """Let a worker go; answers what it held."""
    assert worker.stdin is not None and worker.stdout is not None
    worker.stdin.close()
    peak = int(worker.stdout.readline())
    worker.wait()
    return peak


def work() -> None:
    """Take turns whenever a line comes in, as a worker of queue cycle does."""
    for _ in sys.stdin:
        print(json.dumps(list(turns_to_take())), flush=True)
    print(peak_mb(), flush=True)


def turns_to_take() -> Iterator[Turn]:
    from django.utils import timezone

    from portal.actions.homes import homes
    from portal.actions.promising import turn_in
    from scheduler.live.cluster import live_policy
    from scheduler.live.turns import take_turn, take_turn_in

    whole = "sending" if live_policy().by_cluster else "whole"
    since = timezone.now()
    while not done(since):
        if clusters := sorted(set(homes().values()) - {""}):
            cluster = random.choice(clusters)
            take_turn_in(cluster)
            yield from taken("cluster", turn_in(cluster))
        else:
            take_turn(reconciling=False)
            yield from taken(whole, "cycle")
            time.sleep(0.05)  # a worker that finds the turn taken waits to be woken


def done(since: datetime) -> bool:
    """Whether a whole turn found places for nobody, and nobody is sent."""
    from portal.actions.homes import homes
    from portal.models import Lease

    lease = Lease.objects.filter(name="cycle", until=None, beat_at__gt=since).first()
    return lease is not None and not lease.detail.get("places") and not homes()


def taken(kind: str, name: str) -> Iterator[Turn]:
    """The turn that this worker took last, if it found places for anybody."""
    from portal.models import Lease
    from scheduler.live.lease import holder

    lease = Lease.objects.get(name=name)
    detail = lease.detail
    if lease.holder == holder() and lease.beat_at not in _told and detail.get("places"):
        _told.add(lease.beat_at)
        yield kind, detail["cycle_s"], detail["places"]


_told: set[Any] = set()
"""When the turns ended that were told already."""


if __name__ == "__main__":
    main()
