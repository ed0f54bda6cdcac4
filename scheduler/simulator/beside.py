"""Simulations in a process of their own, niced, so that whoever starts them goes on undisturbed.

What to play goes in as a pickle on standard input, from the parent alone. Out come JSON lines: what
the trace holds, how far it is, and at the end of each case its record. The process ends by itself
when its parent does: nobody reads then.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from scheduler.planner import Policy
from scheduler.simulator.arrivals import Trace, UnreadableTraceError
from scheduler.simulator.fleets import Fleet
from scheduler.simulator.physics import Costs
from scheduler.simulator.records import Record, record
from scheduler.simulator.simulation import Progress, simulate
from scheduler.simulator.splitting import Sensitivity
from scheduler.simulator.traces import read_trace

NICENESS = 15
SAYS_EVERY_S = 0.5
ASKED_EVERY_S = 1.0
BROKEN_TOLD = 20
"""So many broken lines are told one by one; the others are counted."""


class SimulationFailedError(RuntimeError):
    """The process of a simulation ended without a record."""


class RefusedError(ValueError):
    """What was asked cannot be played; the sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A fleet and a policy to play a trace on."""

    fleet: Fleet
    policy: Policy
    costs: Costs = field(default_factory=Costs)
    seed: int = 0
    sensitivity: Sensitivity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What is to be played: one trace, case after case."""

    trace: Trace | Path
    """A file is read by the process itself."""
    name: str = ""
    """What to call a file."""
    strict: bool = False
    """Whether a file with a broken line is refused."""
    cases: tuple[Case, ...]
    most_bytes: int = 0
    """Memory that the process may take; 0: as much as there is."""


@dataclass(slots=True)
class Played:
    """What came of it."""

    name: str = ""
    jobs: int = 0
    left_out: int = 0
    broken: list[str] = field(default_factory=list)
    """The first lines that could not be read, and why."""
    broken_count: int = 0
    unused: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


def play_beside(play: Play, going_on: Callable[[float], bool]) -> Played | None:
    """Play in another process and answer its records; ``None`` when it was called off.

    ``going_on`` is told about each second how far it is, 0 to 1; when it answers ``False`` the
    process is ended. Raises ``RefusedError`` for what cannot be played, and
    ``SimulationFailedError`` with what the process last said.
    """
    command = [sys.executable, "-m", "scheduler.simulator.beside"]
    # A session of its own is a scheduling group of its own, where the kernel groups by session.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as process:  # fmt: skip
        try:
            return _attend(process, play, going_on)
        finally:
            process.kill()
            # It may not have read all that was handed over when it was called off.
            with contextlib.suppress(OSError):
                cast("IO[bytes]", process.stdin).close()


def _attend(
    process: subprocess.Popen[bytes], play: Play, going_on: Callable[[float], bool]
) -> Played | None:
    assert process.stdin and process.stdout and process.stderr
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    wrong: list[bytes] = []
    complaints = threading.Thread(target=_read, args=(process.stderr, wrong.append), daemon=True)
    complaints.start()
    threading.Thread(target=_read, args=(process.stdout, lines.put), daemon=True).start()
    threading.Thread(target=_hand_over, args=(play, process.stdin), daemon=True).start()
    played, share = Played(), 0.0
    while len(played.records) < len(play.cases):
        try:
            line = lines.get(timeout=ASKED_EVERY_S)
        except queue.Empty:
            line = b"{}"
        if not line:
            complaints.join(ASKED_EVERY_S)
            last = b"".join(wrong).decode(errors="replace").strip().splitlines()
            raise SimulationFailedError(last[-1] if last else f"it ended with {process.wait()}")
        said = json.loads(line)
        if "refused" in said:
            raise RefusedError(said["refused"])
        if "trace" in said:
            played = Played(**said["trace"])
        if "record" in said:
            played.records.append(said["record"])
        share = said.get("share", share)
        if not going_on(share):
            return None
    return played


def _hand_over(play: Play, pipe: IO[bytes]) -> None:
    """Write what is to be played; a process that steps back may take its time to read it."""
    with contextlib.suppress(OSError, ValueError):  # it died at once; what it said tells why
        pickle.dump(play, pipe)
        pipe.close()


def _read(pipe: IO[bytes], put: Callable[[bytes], None]) -> None:
    """Pass on each line, and at the end an empty one."""
    with contextlib.suppress(OSError, ValueError):  # closed meanwhile: nobody listens any more
        for line in pipe:
            put(line)
    put(b"")


def main() -> None:
    """Play what is on standard input."""
    step_back()
    play: Play = pickle.load(sys.stdin.buffer)
    allowed = resource.getrlimit(resource.RLIMIT_AS)
    if play.most_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (play.most_bytes, allowed[1]))
    try:
        _play(play)
    except MemoryError:
        # Without room of its own even the refusal could fail.
        resource.setrlimit(resource.RLIMIT_AS, allowed)
        most = f"{play.most_bytes / 2**30:.1f} GiB"
        say({"refused": f"It needs more than {most} of memory, which is all it may have."})
    except OSError as error:
        say({"refused": f"The trace could not be read: {error.strerror}."})
    except (RefusedError, UnreadableTraceError) as error:
        say({"refused": str(error)})


def step_back() -> None:
    """Take processor time only where nobody else wants it."""
    os.nice(NICENESS)
    # Niceness weighs within a session alone where the kernel groups by session: say it for all.
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICENESS))


def _play(play: Play) -> None:
    trace = play.trace
    if isinstance(trace, Path):
        trace = read_trace(trace, name=play.name, strict=play.strict)
    if not trace.arrivals:
        why = f": {trace.broken[0]}" if trace.broken else ""
        raise RefusedError(f"There is no job in {trace.name} that ran{why}.")
    told = Played(
        name=trace.name,
        jobs=len(trace.arrivals),
        left_out=trace.left_out,
        broken=[str(each) for each in trace.broken[:BROKEN_TOLD]],
        broken_count=len(trace.broken),
        unused=list(trace.unused),
    )
    said: dict[str, object] = {name: getattr(told, name) for name in Played.__slots__}
    say({"trace": said})
    for number, case in enumerate(play.cases):
        record_ = _play_case(trace, case, number, len(play.cases))
        say({"record": record_})


def _play_case(trace: Trace, case: Case, number: int, cases: int) -> Record:
    said_at = 0.0

    def tell(progress: Progress) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= SAYS_EVERY_S:
            said_at = time.monotonic()
            say({"share": (number + progress.share) / cases})

    result = simulate(
        trace,
        case.fleet,
        case.policy,
        costs=case.costs,
        seed=case.seed,
        sensitivity=case.sensitivity,
        progress=tell,
    )
    return record(result)


def say(words: dict[str, object]) -> None:
    """Pass a line on to the parent."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
