"""How many jobs a second, and how soon one starts: ``python -m tests.benchmarks.live --json``.

A product of its own with the ``process`` driver, then one with the ``fake`` driver.
``submits_per_s``: submissions by four clients at once. ``noop_jobs_per_s``: jobs that do nothing,
from the first submission to the last end. ``start_p50_ms`` and ``start_p95_ms``: from submission to
running, one job at a time on an idle fleet. ``cpu_ms``: milliseconds of processor time that a job
costs from submission to end, in each part of the product; unlike the others it says much the same
on a busy machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.product import PARTS, Product

CLIENTS = 4
LOOK_S = 0.25
"""Between two looks whether all jobs have ended: each look costs the portal as much as a job."""
JOB = {"tenant": "vision", "tier": "standard", "command": ["true"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    parser.add_argument("--jobs", type=int, default=400)
    parser.add_argument("--starts", type=int, default=40)
    told = parser.parse_args()
    figures = measure(jobs=told.jobs, starts=told.starts)
    print(json.dumps(figures, indent=None if told.json else 2))


def measure(*, jobs: int = 400, starts: int = 40) -> dict[str, Any]:
    """Answer the figures of the process driver, and below ``fake`` those of the fake one."""
    process = measure_driver(
        {"TIDEPOOL_DRIVER": "process", "TIDEPOOL_DEVICES": "cpu:8"}, jobs, starts
    )
    fake = measure_driver({"TIDEPOOL_DRIVER": "fake", "TIDEPOOL_DEVICES": "fake:8"}, jobs, starts)
    return {**process, "fake": fake}


def measure_driver(environment: dict[str, str], jobs: int, starts: int) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory(prefix="tidepool-") as folder,
        Product(Path(folder) / "home", environment) as product,
        product.client("ana") as client,
    ):
        delays = sorted(start_once(client) for _ in range(starts))
        spent = cpu_s(product)
        began = time.monotonic()
        with ThreadPoolExecutor(CLIENTS) as pool:
            chunks = [jobs // CLIENTS] * CLIENTS
            list(pool.map(lambda count: submit_many(product, count), chunks))
        submitted = time.monotonic()
        while live(client):
            time.sleep(LOOK_S)
        ended = time.monotonic()
        cost = {part: 1000 * (s - spent[part]) / sum(chunks) for part, s in cpu_s(product).items()}
    return {
        "submits_per_s": round(sum(chunks) / (submitted - began), 1),
        "noop_jobs_per_s": round(sum(chunks) / (ended - began), 1),
        "start_p50_ms": round(1000 * statistics.median(delays), 1),
        "start_p95_ms": round(1000 * delays[int(0.95 * (len(delays) - 1))], 1),
        "cpu_ms": {part: round(ms, 1) for part, ms in cost.items() if ms >= 0.05},
    }


def cpu_s(product: Product) -> dict[str, float]:
    """Processor seconds that each part has used, with those of its children that have ended."""
    found = {}
    for part in PARTS:
        times = psutil.Process(product.pid(part)).cpu_times()
        found[part] = sum(times[:4])
    return found


def submit_many(product: Product, count: int) -> None:
    with product.client("ana") as client:
        for number in range(count):
            client.post("jobs/", json={**JOB, "name": f"noop {number}"}).raise_for_status()


def start_once(client: httpx.Client) -> float:
    """Submit one job and answer the seconds until its command ran."""
    answer = client.post("jobs/", json={**JOB, "name": "start"})
    answer.raise_for_status()
    id = answer.json()["id"]
    for _ in itertools.count():
        job = client.get(f"jobs/{id}/").json()
        if job["ended_at"]:
            break
        time.sleep(0.02)
    if job["state"] != "succeeded":
        raise RuntimeError(f"job {id} {job['state']}: {job['detail'] or job['sentence']}")
    # One that has ended before its first report was never seen running.
    return moment(job["started_at"] or job["ended_at"]) - moment(job["submitted_at"])


def live(client: httpx.Client) -> int:
    answer = client.get("jobs/", params={"state": "live", "page_size": 1})
    answer.raise_for_status()
    return int(answer.json()["count"])


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


if __name__ == "__main__":
    main()
