"""A training on four hosts moved again and again: ``python -m tests.benchmarks.migration --json``.

Four replicas of PyTorch's DDP on two of four hosts, each a network namespace of this machine, are
at random moments moved to the other hosts, spread over fewer devices, and grown back. ``equal``:
all ranks end with the weights of an undisturbed run. ``steps_lost``: steps that any rank computed
twice or not at all. ``downtime_s``: the median seconds between two steps around a move, less the
pace. ``bare_runc_s``: the median seconds of runc's checkpoint and restore of the same four
containers on two of the same hosts, side by side and with nothing around them. ``phases``: median
seconds of the slowest replica. ``bytes_*``: of a checkpoint of all replicas; ``new`` is what the
store did not hold yet, before compression.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from portal.demo.fleet import Fleet
from tests.benchmarks.spread import bare_runc
from tests.fleets.conftest import HOSTS
from tests.fleets.fleet import HostFleet
from tests.fleets.training import Training, Undisturbed

PACE = 0.1
STEPS_A_CHECKPOINT = 66
"""Enough for the pauses between two moves, and for the moves to be asked for."""
PAUSE_S = (0.5, 3.0)
LOOK_S = 1.0
"""Between two looks whether a move is over: of the portal's work during one little is ours."""
ROUND: Sequence[int] = (0, 2, 0, 1, 4)
"""Devices to be spread over; 0 is a move to other hosts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    parser.add_argument("--checkpoints", type=int, default=20)
    parser.add_argument("--bare", type=int, default=3, help="times that runc is measured alone")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    figures = measure(checkpoints=told.checkpoints, bare=told.bare, seed=told.seed)
    print(json.dumps(figures, indent=None if told.json else 2))


def measure(*, checkpoints: int = 20, bare: int = 3, seed: int = 1) -> dict[str, Any]:
    """Start a fleet and answer all figures, in seconds and bytes."""
    steps = checkpoints * STEPS_A_CHECKPOINT
    with tempfile.TemporaryDirectory(prefix="tidepool-") as name:
        folder = Path(name)
        with HostFleet(folder / "home", HOSTS) as hosts:
            fleet = Fleet(hosts.url, hosts.token("ana"), "vision")
            try:
                training = Training(fleet, steps=steps, pace=PACE, replicas=4, fewest_devices=1)
                receipts = disturb(training, checkpoints, random.Random(seed))
                weights = training.weights()
                found = figures(training, receipts)
            finally:
                fleet.close()
            alone = bare_runc(hosts, bare)
        equal = weights == {Undisturbed(folder, steps=steps, replicas=4).weights()}
    return {
        "equal": equal,
        **found,
        "bare_runc_s": round(alone, 3),
        "ratio": round(found["downtime_s"] / alone, 2),
    }


def disturb(training: Training, times: int, chance: random.Random) -> list[dict[str, Any]]:
    """Move and resize it by turns at random moments; answer the receipts."""
    training.wait_for_step(3)
    training.look_s = LOOK_S
    receipts = []
    for number in range(times):
        time.sleep(chance.uniform(*PAUSE_S))
        devices = ROUND[number % len(ROUND)]
        receipts.append(training.resize(devices) if devices else training.migrate())
    return receipts


def figures(training: Training, receipts: list[dict[str, Any]]) -> dict[str, Any]:
    """What the receipts and the steps tell."""
    done = [receipt for receipt in receipts if not receipt["called_off"]]
    at = [float(line.rpartition(" at ")[2]) for line in training.lines(0)]
    first, *later = done
    return {
        "checkpoints": len(done),
        "called_off": len(receipts) - len(done),
        "steps_lost": sum(map(abs, training.lost().values())),
        "downtime_s": median(gap(at, receipt) for receipt in done),
        "downtime_by_kind": {
            kind: median(gap(at, receipt) for receipt in done if receipt["kind"] == kind)
            for kind in sorted({receipt["kind"] for receipt in done})
        },
        "phases": {
            name: median(receipt["phases"].get(name, 0.0) for receipt in done)
            for name in sorted({name for receipt in done for name in receipt["phases"]})
        },
        "bytes_raw": first["bytes_raw"],
        "bytes_new_first": first["bytes_new"],
        "bytes_new_later": round(median(receipt["bytes_new"] for receipt in later)),
    }


def gap(at: list[float], receipt: dict[str, Any]) -> float:
    """The seconds between the last step before a stop and the first one after it."""
    before = max(moment for moment in at if moment <= receipt["stopped_at"])
    return min(moment for moment in at if moment > receipt["stopped_at"]) - before - PACE


def median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 3)


if __name__ == "__main__":
    main()
