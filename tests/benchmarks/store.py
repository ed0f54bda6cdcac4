"""``python -m tests.benchmarks.store [--json]``: how fast the chunk store is, beside a plain copy.

The images are real where CRIU is there (a process that trains with numpy, dumped twice, and its
twin), else made in the same format; ``images`` in the answer says which. A MB is a million bytes.
``durable_*``: how many times as long a store takes that waits until all is on disk.
``taken_*``: pages taken while they are dumped, and stored; ``later`` beside the kept first image.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from agents.checkpoints import Base, Intake, fetch_image, open_store, store_image
from agents.toolchain import find
from tests.agents.checkpoints.images import Area, dump_again, write

ROOT = Path(__file__).resolve().parents[2]
TRAIN = """
import numpy as np, sys
chance = np.random.default_rng(0)
data = chance.integers(0, 255, (40_000, 784), dtype=np.uint8)
data[data < 200] = 0
weights = chance.normal(size=(784, 512)).astype(np.float32)
for step in range(1 << 60):
    batch = data[step * 64 % 39_000:][:64].astype(np.float32) / 255
    weights -= 1e-5 * batch.T @ (batch @ weights)
    if step % 100 == 0:
        print(step, flush=True)
"""


def measure() -> dict[str, Any]:
    """Store and fetch images and copy the same bytes; seconds are the best of three."""
    with tempfile.TemporaryDirectory(prefix="tidepool-bench-") as name:
        folder = Path(name)
        kind = "criu" if dump(folder) else make(folder)
        return {"images": kind, "cores": os.cpu_count(), **figures(folder)}


def figures(folder: Path) -> dict[str, Any]:
    """Measure on ``folder/first``, ``folder/later`` and ``folder/twin``."""
    (folder / "workspace").mkdir()
    workspace = folder / "workspace"
    seconds: list[float] = []
    stored = []
    for attempt in range(3):
        store = open_store(folder / f"store-{attempt}")
        began, used = time.perf_counter(), time.process_time()
        stored = [store_image(store, folder / "first", workspace)]
        seconds.append(time.perf_counter() - began)
        used = time.process_time() - used
    stored += [store_image(store, folder / name, workspace) for name in ("later", "twin")]
    copies = [copy(folder) for _ in range(3)]
    fetched = fetch_image(store, stored[0].manifest_key, folder / "i", folder / "w")
    first, later, twin = stored
    megabytes = first.bytes_raw / 1e6
    return {
        **durability(folder),
        **taken(folder),
        "mb": round(megabytes, 1),
        "mb_per_s": round(megabytes / min(seconds), 1),
        "mb_per_core_s": round(megabytes / used, 1),
        "copy_mb_per_s": round(megabytes / min(copies), 1),
        "ratio": round(min(copies) / min(seconds), 3),
        "fetch_mb_per_s": round(megabytes / fetched.seconds, 1),
        "later_mb_per_s": round(later.bytes_raw / 1e6 / later.seconds, 1),
        "stored_share": round(first.bytes_stored / first.bytes_raw, 3),
        "new_later_share": round(later.bytes_new / later.bytes_raw, 3),
        "new_twin_share": round(twin.bytes_new / twin.bytes_raw, 3),
    }


def taken(folder: Path) -> dict[str, float]:
    """Megabytes a second from CRIU's hands to the store; the best of three."""
    rates: dict[str, list[float]] = defaultdict(list)
    for attempt in range(3):
        place = folder / f"taken-{attempt}"
        store = open_store(place / "store")
        base = None
        for name in ("first", "later"):
            began = time.perf_counter()
            with Intake(place / name, place / f"{name}-aside", base=base) as intake:
                dump_again(folder / name, place / name)
            stored = store_image(store, place / name, folder / "workspace", intake=intake)
            rates[name].append(stored.bytes_raw / 1e6 / (time.perf_counter() - began))
            base = Base(images=place / name, manifest=stored.manifest)
        shutil.rmtree(place)
    return {f"taken_{name}_mb_per_s": round(max(each), 1) for name, each in rates.items()}


def durability(folder: Path) -> dict[str, float]:
    """How much longer a store takes that waits for the disk: medians of five, by turns."""
    seconds: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for attempt in range(5):
        for durable in (False, True):
            store = open_store(folder / f"lasting-{durable}-{attempt}", durable=durable)
            for name in ("first", "later"):
                stored = store_image(store, folder / name, folder / "workspace")
                seconds[name, durable].append(stored.seconds)
            shutil.rmtree(folder / f"lasting-{durable}-{attempt}")
    half = {key: statistics.median(values) for key, values in seconds.items()}
    return {
        f"durable_{name}": round(half[name, True] / half[name, False], 2)
        for name in ("first", "later")
    }


def copy(folder: Path) -> float:
    """Copy the first image as cp does; return the seconds."""
    shutil.rmtree(folder / "copy", ignore_errors=True)
    began = time.perf_counter()
    shutil.copytree(folder / "first", folder / "copy")
    return time.perf_counter() - began


def dump(folder: Path) -> bool:
    """Dump a training process twice and its twin once; False where this machine cannot."""
    criu = find(ROOT / ".tidepool" / "node").criu
    if criu is None or os.geteuid() != 0:
        return False
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TRAIN],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        for _ in range(2)
    ]
    try:
        for process in processes:
            train_on(process)
        done = [dump_one(criu, processes[0].pid, folder / "first")]
        train_on(processes[0])
        done.append(dump_one(criu, processes[0].pid, folder / "later"))
        done.append(dump_one(criu, processes[1].pid, folder / "twin"))
        return all(done)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def train_on(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has trained for some hundred more steps."""
    assert process.stdout
    for _ in range(5):
        process.stdout.readline()


def dump_one(criu: Path, pid: int, folder: Path) -> bool:
    """Dump one process and let it run on; False where CRIU could not."""
    folder.mkdir()
    command = [str(criu), "dump", f"--tree={pid}", f"--images-dir={folder}", "--leave-running"]
    command += ["--network-lock=skip", "--shell-job", "--log-file=dump.log"]
    return subprocess.run(command, capture_output=True).returncode == 0


def make(folder: Path) -> str:
    """Make images of 200 MB; a tenth of the later one is new, the twin lies elsewhere."""
    noise = os.urandom(1 << 20)
    heap = b"".join(noise[at:] + noise[:at] + bytes(1 << 20) for at in range(0, 100 * 4096, 4096))
    changed = os.urandom(len(heap) // 10) + heap[len(heap) // 10 :]
    for name, content, start in (
        ("first", heap, 0x5555_0000_0000),
        ("later", changed, 0x5555_0000_0000),
        ("twin", heap, 0x5600_1234_5000),
    ):
        shutil.rmtree(folder / name, ignore_errors=True)
        content = content[: len(content) - len(content) % 4096]
        write(folder / name, [Area(start, content)])
    return "made"


if __name__ == "__main__":
    answer = {"benchmark": "store", **measure()}
    print(json.dumps(answer, indent=None if "--json" in sys.argv else 2))
