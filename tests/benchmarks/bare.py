"""A checkpoint and a restore of the digits training by runc, without the portal around it."""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from pathlib import Path

from agents.choice import choose_driver
from agents.config import read_config
from agents.drivers.base import Driver, Task
from portal.demo.story import DIGITS
from tests.product import ROOT, wait_for


def bare_runc(folder: Path, pace: float, times: int) -> float | None:
    """Answer the median seconds of checkpoint and restore together; None where it can't be done."""
    prefix = ROOT / ".tidepool" / "node"
    flags = ["--portal=http://127.0.0.1:1", "--node=bare", f"--state={folder}"]
    told = {"TIDEPOOL_NODE_TOKEN": "none"}
    driver = choose_driver(read_config([*flags, f"--prefix={prefix}"], told))
    if not driver.probe()["checkpoint"].able:
        return None
    task = prepare(folder, pace)
    driver.start(task)
    try:
        return round(statistics.median(once(driver, task, folder) for _ in range(times)), 4)
    finally:
        driver.stop(task, 0)
        driver.remove(task)


def prepare(folder: Path, pace: float) -> Task:
    home = folder / "replicas" / "bare"
    (home / "workspace").mkdir(parents=True)
    shutil.copy(DIGITS / "train.py", home / "workspace")
    return Task(
        key="bare",
        folder=home,
        output=home / "output",
        command=("python", "train.py", "--steps", "1000000", "--pace", str(pace)),
        environment={
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONUNBUFFERED": "1",
        },
        cpus=1.0,
    )


def once(driver: Driver, task: Task, folder: Path) -> float:
    """Let it compute, then take and bring back its memory; answer the seconds of runc alone."""
    start = task.output.stat().st_size if task.output.exists() else 0
    wait_for(lambda: task.output.exists() and task.output.stat().st_size > start + 1000, "steps")
    images = folder / "images"
    shutil.rmtree(images, ignore_errors=True)
    driver.freeze(task)
    began = time.monotonic()
    driver.dump(task, images)
    dumped = time.monotonic() - began
    driver.remove(task)
    began = time.monotonic()
    driver.restore(task, images)
    restored = time.monotonic() - began
    driver.thaw(task)
    return dumped + restored
