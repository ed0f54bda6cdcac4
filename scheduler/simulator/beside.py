"""A simulation in a process of its own, niced, so that whoever started it goes on undisturbed.

What to play goes in as a pickle on standard input, from the parent alone. Out come JSON lines: how
far it is, and at the end its record. It ends by itself when its parent does: nobody reads then.
"""

from __future__ import annotations

import json
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from scheduler.planner import Policy
from scheduler.simulator.arrivals import Trace
from scheduler.simulator.fleets import Fleet
from scheduler.simulator.records import Record, record
from scheduler.simulator.simulation import Progress, simulate

NICENESS = 15
SAYS_EVERY_S = 0.5
ASKED_EVERY_S = 1.0


class SimulationFailedError(RuntimeError):
    """The process of a simulation ended without a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is to be played."""

    trace: Trace
    fleet: Fleet
    policy: Policy
    seed: int = 0


def simulate_beside(case: Case, going_on: Callable[[int], bool]) -> Record | None:
    """Play a case in another process and answer its record; ``None`` when it was called off.

    ``going_on`` is told each second how many jobs have finished; when it answers ``False`` the
    process is ended. Raises ``SimulationFailedError`` with what the process last said.
    """
    command = [sys.executable, "-m", "scheduler.simulator.beside"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:  # fmt: skip
        try:
            return _attend(process, case, going_on)
        finally:
            process.kill()


def _attend(
    process: subprocess.Popen[bytes], case: Case, going_on: Callable[[int], bool]
) -> Record | None:
    assert process.stdin and process.stdout and process.stderr
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    wrong: list[bytes] = []
    readers = [
        threading.Thread(target=_read, args=(process.stdout, lines.put), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, wrong.append), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        pickle.dump(case, process.stdin)
        process.stdin.close()
    except BrokenPipeError:
        pass  # it died at once; what it said tells why
    finished = 0
    while True:
        try:
            line = lines.get(timeout=ASKED_EVERY_S)
        except queue.Empty:
            line = b"{}"
        if not line:
            break
        said = json.loads(line)
        if "record" in said:
            found: Record = said["record"]
            return found
        finished = said.get("finished", finished)
        if not going_on(finished):
            return None
    readers[1].join(ASKED_EVERY_S)
    last = b"".join(wrong).decode(errors="replace").strip().splitlines()
    raise SimulationFailedError(last[-1] if last else f"it ended with {process.wait()}")


def _read(pipe: IO[bytes], put: Callable[[bytes], None]) -> None:
    """Pass on each line, and at the end an empty one."""
    for line in pipe:
        put(line)
    put(b"")


def main() -> None:
    """Play the case on standard input."""
    os.nice(NICENESS)
    case: Case = pickle.load(sys.stdin.buffer)
    said = 0.0

    def tell(progress: Progress) -> None:
        nonlocal said
        if time.monotonic() - said >= SAYS_EVERY_S:
            said = time.monotonic()
            say({"finished": progress.finished})

    result = simulate(case.trace, case.fleet, case.policy, seed=case.seed, progress=tell)
    say({"record": record(result)})


def say(words: dict[str, object]) -> None:
    """Pass a line on to the parent."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
