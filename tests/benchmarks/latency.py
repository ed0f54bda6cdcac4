"""How long a submission, a move and a step take: ``python -m tests.benchmarks.latency --json``.

Starts a product of its own. ``submit_to_output_s``: from sending the request to reading the first
line of output over the API, median of 20 on an idle fleet, with its ``parts``.
``migrate_downtime_s``: seconds without a step when a training moves, against ``bare_runc_s``, one
checkpoint and restore by runc of the same process with nothing around it. ``step_overhead``: how
much longer a step takes inside, as a fraction.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from portal.demo.fleet import Fleet
from portal.demo.story import DIGITS
from tests.benchmarks.bare import bare_runc
from tests.product import Product

NOW = 'date "+at %s.%N"'
STAMP = re.compile(r"^at (\d+\.\d+)$", re.MULTILINE)
STEP = re.compile(r"^step (\d+) loss \S+ at (\d+\.\d+)$", re.MULTILINE)
PACE = 0.01
THREADS = ("OMP", "OPENBLAS", "MKL")
HEAVY = ["--steps", "600", "--batch", "1797"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    parser.add_argument("--submits", type=int, default=20)
    parser.add_argument("--moves", type=int, default=5)
    told = parser.parse_args()
    figures = measure(submits=told.submits, moves=told.moves)
    print(json.dumps(figures, indent=None if told.json else 2))


def measure(*, submits: int = 20, moves: int = 5) -> dict[str, Any]:
    """Start a product and answer all figures, in seconds."""
    with tempfile.TemporaryDirectory(prefix="tidepool-") as folder:
        with Product(Path(folder) / "home") as product:
            fleet = Fleet(product.url, product.token("ana"), "vision")
            try:
                starts = [submit_once(product, fleet) for _ in range(submits)]
                downtimes = downtime(fleet, moves)
                # By turns, so that whatever else the machine does weighs on both.
                steps = [(step_inside(fleet), step_outside()) for _ in range(3)]
            finally:
                fleet.close()
        bare = bare_runc(Path(folder) / "bare", PACE, moves)
    moved = round(statistics.median(downtimes), 4) if downtimes else None
    inside, outside = (min(column) for column in zip(*steps, strict=True))
    return {
        "submit_to_output_s": middle(starts, "all"),
        "parts": {part: middle(starts, part) for part in ("api", "cycle", "delivery", "container")},
        "migrate_downtime_s": moved,
        "bare_runc_s": bare,
        "ratio": round(moved / bare, 3) if moved and bare else None,
        "step_overhead": round(inside / outside - 1, 4),
    }


def middle(starts: list[dict[str, float]], part: str) -> float:
    return round(statistics.median(start[part] for start in starts), 4)


def submit_once(product: Product, fleet: Fleet) -> dict[str, float]:
    """Submit a job that prints the time, and answer the seconds of each part of the way."""
    began = time.time()
    fields = {"name": "latency", "tenant": fleet.tenant, "tier": "standard"}
    answer = fleet.http.post("jobs/", json={**fields, "command": ["sh", "-c", NOW]})
    answer.raise_for_status()
    posted = time.time()
    job = answer.json()["id"]
    while not (stamp := STAMP.search(fleet.output(job))):
        time.sleep(0.005)
    seen = time.time()
    fleet.wait_for_end(job)
    submitted = moment(answer.json()["submitted_at"])
    placed = moment(fleet.placements(job)[0]["created_at"])
    launch = launch_seconds(product.home / "database.sqlite3", job)
    return {
        "all": seen - began,
        "api": posted - began,
        "cycle": placed - submitted,
        "delivery": max(0.0, float(stamp[1]) - placed - launch),
        "container": launch,
    }


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def launch_seconds(database: Path, job: int) -> float:
    """Answer the seconds in which the agent made and started the container."""
    query = (
        "select r.phases from portal_placedreplica r join portal_placement p"
        " on r.placement_id = p.id where p.job_id = ?"
    )
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as rows:
        phases = json.loads(rows.execute(query, [job]).fetchone()[0])
    return float(phases.get("launch", 0.0))


def downtime(fleet: Fleet, moves: int) -> list[float]:
    """Move a training again and again; answer the seconds without a step each time."""
    command = json.dumps(["python", "train.py", "--steps", "1000000", "--pace", str(PACE)])
    told = {"tenant": fleet.tenant, "tier": "standard", "command": command}
    job = fleet.submit(DIGITS, name="mover", **told)
    found = []
    for number in range(1, moves + 1):
        before = len(fleet.steps(job)) if number > 1 else 0
        fleet.wait_for_step(job, before + 50)
        fleet.migrate(job)

        def moved(number: int = number) -> bool:
            receipts = fleet.receipts(job)
            return len(receipts) == number and over(receipts[-1])

        fleet.wait("the move to be over", moved)
        if reason := fleet.receipts(job)[-1]["called_off"]:
            print(f"the move was called off: {reason}", file=sys.stderr)
            break
        fleet.wait_for_step(job, len(fleet.steps(job)) + 5)
        found.append(longest_gap(fleet.output(job), number))
    fleet.cancel(job)
    return found


def over(receipt: dict[str, Any]) -> bool:
    return receipt["downtime_s"] is not None or bool(receipt["called_off"])


def longest_gap(output: str, number: int) -> float:
    """Answer the last in time of the ``number`` longest gaps between steps, less the pace."""
    times = [float(at) for _, at in STEP.findall(output)]
    gaps = sorted(range(1, len(times)), key=lambda i: times[i - 1] - times[i])[:number]
    last = max(gaps)  # every earlier move left a gap of its own
    return times[last] - times[last - 1] - PACE


def step_inside(fleet: Fleet) -> float:
    command = json.dumps(["python", "train.py", *HEAVY])
    told = {"tenant": fleet.tenant, "tier": "standard", "command": command}
    job = fleet.submit(DIGITS, name="steps", **told)
    fleet.wait_for_end(job)
    fleet.weights(job)
    return step_seconds(fleet.output(job))


def step_outside() -> float:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(DIGITS / "train.py"), *HEAVY],
            cwd=folder,
            # As many threads as a job on one device is told to use: else two cores beat one.
            env={**os.environ, **{f"{name}_NUM_THREADS": "1" for name in THREADS}},
            capture_output=True,
            text=True,
            check=True,
        )
    return step_seconds(done.stdout)


def step_seconds(output: str) -> float:
    times = [float(at) for _, at in STEP.findall(output)]
    return (times[-1] - times[0]) / (len(times) - 1)


if __name__ == "__main__":
    main()
