"""How fast the live cycle sees, plans and acts: ``python -m tests.benchmarks.observing --json``.

A fleet is written to a real database (``--database postgres``: a server of its own; ``sqlite``: a
file), then a worker's first cycle and those after 100 changes each are timed there.
``observe_cold_s``, ``plan_cold_s`` and ``enact_cold_s`` are the first cycle's parts, ``..._warm_s``
the medians of those after it, ``cpu_s`` the worker's own time in each; ``queries`` counts a look's
queries; ``peak_mb`` is the worker's. Of each plan 100 placements and all answers are enacted; the
first time everyone who waits gets an answer, later most have it already.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.postgres import postgres

ROUNDS = 5
CHANGES = 100
SETTLING = 3
"""Plans that a fleet needs to come to rest."""
Measure = Callable[[argparse.Namespace], dict[str, Any]]


def main() -> None:
    run("observing", cycles)


def run(name: str, measure: Measure, *, settled: bool = False, about: str = "") -> None:
    """Lay a fleet out in a database of its own and print what is measured there, as JSON.

    Of a ``settled`` fleet the first plans were carried out on paper before.
    """
    options = read_options(about or __doc__ or "")
    if options.url:
        import django

        django.setup()
        figures = build(options, settled=settled) if options.stage == "build" else measure(options)
        print(json.dumps(figures))
        return
    with database(options.database) as url:
        words = [sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{name}", "--url", url]
        environment = os.environ | {
            "TEST_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"
        }  # fmt: skip
        for stage in ("build", "measure"):
            subprocess.run(
                [*words, *sys.argv[1:], "--stage", stage], check=True, env=environment,
                stdout=None if stage == "measure" else subprocess.DEVNULL,
            )  # fmt: skip


def read_options(about: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--database", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--nodes", type=int, default=12_500)
    parser.add_argument("--gpus-per-node", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=25_000, help="a fifth of them waits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    parser.add_argument("--stage", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


@contextmanager
def database(kind: str) -> Iterator[str]:
    """The address of an empty database."""
    if kind == "postgres":
        with postgres("shared_buffers=256MB") as url:
            yield url
    else:
        with tempfile.TemporaryDirectory(prefix="tidepool-") as folder:
            yield f"sqlite:///{Path(folder) / 'fleet.sqlite3'}"


def build(options: argparse.Namespace, *, settled: bool) -> dict[str, Any]:
    from django.core.management import call_command
    from django.db import connection

    from scheduler.planner import PRESETS, plan
    from scheduler.planner.paper import enacted
    from tests.benchmarks.planner import busy
    from tests.benchmarks.rows import lay_out

    call_command("migrate", verbosity=0)
    options.waiting = options.jobs // 5
    options.running = options.jobs - options.waiting
    snapshot = busy(options)
    for _ in range(SETTLING if settled else 0):
        snapshot = enacted(snapshot, plan(snapshot, PRESETS["default"]))
    lay_out(snapshot, seed=options.seed)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return {}


def cycles(options: argparse.Namespace) -> dict[str, Any]:
    """A first cycle, and some after a hundred changes each."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from scheduler.live.enacting import enact
    from scheduler.live.observing import Watch
    from scheduler.planner import PRESETS, Memory, plan
    from tests.benchmarks.planner import NOW
    from tests.benchmarks.rows import Life, moment

    watch, memory, policy = Watch(), Memory(), PRESETS["default"]
    life = Life(options.seed)
    figures: dict[str, Any] = {}
    warm: list[dict[str, float]] = []
    for round in range(ROUNDS + 1):
        now = moment(NOW + 2 * round)
        if round:
            life.change(CHANGES, now)
        times: dict[str, float] = {}
        with CaptureQueriesContext(connection) as queries:
            snapshot = timed("observe", times, lambda: watch.observe(now))  # noqa: B023
        decided = timed("plan", times, lambda: plan(snapshot, policy, memory))  # noqa: B023
        if not round:
            figures |= sizes(snapshot)
            figures["queries_cold"] = len(queries)
            figures["observe_peak_mb"] = peak_mb()
        decided = few(decided)
        timed("enact", times, lambda: enact(decided, now))  # noqa: B023
        if round:
            warm.append(times)
            figures["queries_warm"] = len(queries)
        else:
            figures |= {f"{name}_cold_{unit}": value for (name, unit), value in split(times)}
            figures["enacted"] = len(decided)
    for (name, unit), _ in split(warm[0]):
        seen = [times[f"{name} {unit}"] for times in warm]
        figures[f"{name}_warm_{unit}"] = round_off(statistics.median(seen))
    return {"benchmark": "observing", "database": connection.vendor} | figures | {
        "peak_mb": peak_mb()
    }  # fmt: skip


def timed(name: str, times: dict[str, float], act: Callable[[], Any]) -> Any:
    began, worked = time.perf_counter(), time.process_time()
    answer = act()
    times[f"{name} s"] = round_off(time.perf_counter() - began)
    times[f"{name} cpu_s"] = round_off(time.process_time() - worked)
    return answer


def split(times: dict[str, float]) -> list[tuple[tuple[str, str], float]]:
    return [((name.split()[0], name.split()[1]), value) for name, value in times.items()]


def sizes(snapshot: Any) -> dict[str, int]:
    return {
        "nodes": len(snapshot.nodes),
        "devices": sum(len(node.devices) for node in snapshot.nodes),
        "running": sum(bool(job.seats) for job in snapshot.jobs),
        "waiting": sum(not job.seats for job in snapshot.jobs),
    }


def few(decided: Any) -> Any:
    """The first hundred placements, and whom the plan lets wait."""
    named = [(type(decision).__name__, decision) for decision in decided]
    placed = [decision for name, decision in named if name == "Place"]
    return (*placed[:CHANGES], *[decision for name, decision in named if name == "Hold"])


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def round_off(seconds: float) -> float:
    return round(seconds, 4)


if __name__ == "__main__":
    main()
