"""The parameter server as a job of a test fleet: every line that it prints can be checked."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from portal.demo.fleet import Fleet
from tests.fleets.fleet import HostFleet
from tests.fleets.jobs import SpreadJob
from tests.fleets.programs.server import START, merge, part

PROGRAMS = Path(__file__).parent / "programs"
LINE = re.compile(r"^step (\d+) state ([0-9a-f]{16}) at (\d+\.\d+)$")


class Service(SpreadJob):
    """Runs until it is cancelled, if ``steps`` are not given."""

    def __init__(
        self, fleet: Fleet, *, replicas: int, steps: int = 1 << 30, pace: float = 0.02, **more: Any
    ) -> None:
        command = ["python", "server.py", "--steps", str(steps), "--pace", str(pace)]
        super().__init__(fleet, PROGRAMS, command, replicas=replicas, **more)

    def wrong(self) -> list[str]:
        """Answer the lines that an undisturbed run would not have printed at their place.

        Steps may be there a second time after a job went back to a checkpoint, but then from one
        step on without a gap, and with the same states. What a host had begun to say when it was
        lost stands before the first of them.
        """
        found = []
        told = {rank: self.lines(rank) for rank in range(self.replicas)}
        longest = max(
            (int(line.split()[1]) for lines in told.values() for line in lines), default=0
        )
        states = undisturbed(longest, self.replicas)
        for rank, lines in told.items():
            found += [f"rank {rank} {line}" for line in astray(lines, states)]
        return found

    def repeated(self) -> int:
        """Answer how many steps rank 0 tells of more than once."""
        numbers = self.numbers()
        return len(numbers) - len(set(numbers))


def astray(lines: Sequence[str], states: Sequence[str]) -> list[str]:
    """Answer the lines of a rank that are not right where they stand."""
    found, last = [], 0
    for line in lines:
        begun, parts = "", LINE.match(line)
        if parts is None:
            begun, _, rest = line.rpartition("step ")
            parts = LINE.match(f"step {rest}")
        right = (
            parts is not None
            and parts[2] == states[int(parts[1])]
            and int(parts[1]) <= last + 1
            and is_begun(begun, last + 1, states)
        )
        if not right:
            found.append(f"after step {last}: {line}")
        last = int(parts[1]) if parts else last
    return found


def is_begun(said: str, step: int, states: Sequence[str]) -> bool:
    """Whether this is the line of a step as far as it goes; nothing at all is, too."""
    whole = f"step {step} state {states[step] if step < len(states) else ''} at "
    return whole.startswith(said) or (said.startswith(whole) and step < len(states))


def undisturbed(steps: int, world: int) -> list[str]:
    """Answer the states as they are printed, by step; 0 is none."""
    state, told = START, [""]
    for step in range(1, steps + 1):
        state = merge([part(state, rank, step) for rank in range(world)])
        told.append(state.hex()[:16])
    return told


class Ticks:
    """When each rank computed, by placement: files that can be read after their replica is gone."""

    def __init__(self, fleet: HostFleet, job: int) -> None:
        self.fleet = fleet
        self.job = job
        self._files: dict[tuple[int, Path], IO[str]] = {}

    def look(self) -> None:
        """Take hold of the files of all replicas that are there now."""
        for name in self.fleet.switch.hosts:
            folder = self.fleet.state(name) / "replicas"
            for path in folder.glob(f"j{self.job}-*/workspace/ticks"):
                rank = int(re.findall(r"-r(\d+)", path.parent.parent.name)[0])
                if (rank, path) not in self._files:
                    with contextlib.suppress(FileNotFoundError):
                        self._files[rank, path] = path.open()

    def overlaps(self) -> list[str]:
        """Answer the ranks that computed in two places by turns: one must end before the other."""
        spans: dict[int, list[tuple[float, float, str]]] = {}
        known: dict[int, set[float]] = {}
        for (rank, path), file in sorted(self._files.items(), key=_epoch):
            file.seek(0)
            times = {float(line) for line in file if line.endswith("\n")}
            # A restored workspace begins with what was computed elsewhere before.
            own = sorted(times - known.get(rank, set()))
            known[rank] = known.get(rank, set()) | times
            if own:
                spans.setdefault(rank, []).append((own[0], own[-1], str(path.parent.parent)))
        return [
            f"rank {rank}: {before} until {end}, {after} from {start}"
            for rank, found in spans.items()
            for (_, end, before), (start, _, after) in pairwise(sorted(found))
            if start <= end
        ]

    def times(self) -> list[float]:
        """Answer when rank 0 computed a step, in order."""
        found: set[float] = set()
        for (rank, _), file in self._files.items():
            if rank == 0:
                file.seek(0)
                found |= {float(line) for line in file if line.endswith("\n")}
        return sorted(found)

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def _epoch(entry: tuple[tuple[int, Path], IO[str]]) -> int:
    (_, path), _ = entry
    return int(path.parent.parent.name.rpartition("-e")[2])
