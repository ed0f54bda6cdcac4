"""Tasks that run in no process: for tests, simulations and demonstrations of whole fleets on one
machine.

What a task does is in its command: ``sleep 5`` ends after five seconds of running, ``exit 3`` at
once with 3, ``say WORDS`` prints and ends, ``forever`` never ends, ``missing`` cannot be started,
``undumpable`` runs for ever and cannot be checkpointed. Anything else ends at once with 0. Its
whole memory is the seconds it has run, which survive freezing, checkpoints and the agent itself, as
a file in its folder.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from agents.drivers.base import Condition, DriverError, Strain, Task, Use
from agents.protocol import Ability

MEMORY = 64 << 20


@dataclass(slots=True)
class Life:
    """A fake task's memory."""

    words: list[str]
    ran_s: float = 0.0
    """Seconds run before ``since``."""
    since: float = 0.0
    """Moment at which it last began to run; 0 while frozen."""
    ended: int = -1
    """Exit code, once stopped from outside."""

    def run_s(self, now: float) -> float:
        """Seconds run in all."""
        return self.ran_s + (max(0.0, now - self.since) if self.since else 0.0)

    def end(self, now: float) -> int | None:
        """The exit code, if it has ended by now."""
        if self.ended >= 0:
            return self.ended
        match self.words:
            case ["sleep", seconds, *_]:
                return 0 if self.run_s(now) >= float(seconds) else None
            case ["forever" | "undumpable", *_]:
                return None
            case ["exit", code, *_]:
                return int(code)
        return 0


class FakeDriver:
    """Every ability, declared; ``clock`` gives the seconds by which tasks run."""

    name = "fake"

    def __init__(self, *, state: Path, clock: Callable[[], float] = time.time) -> None:
        self.state = state
        self.clock = clock

    def probe(self) -> dict[str, Ability]:
        """It can do all, and says that none of it is real."""
        names = ("run", "pause", "checkpoint", "migrate", "device_checkpoint", "network", "profile")
        reason = "played by the fake driver: no process runs"
        return {name: Ability(able=True, reason=reason) for name in names}

    def start(self, task: Task) -> None:
        """Begin, unless it has begun."""
        if self._file(task).exists():
            return
        words = list(task.command)
        if len(words) == 3 and words[1] in ("-c", "-lc"):
            words = shlex.split(words[2])
        if words[:1] == ["missing"]:
            raise DriverError("command-not-found", "There is no program 'missing' on this node.")
        self._write(task, Life(words=words, since=self.clock()))
        with task.output.open("a") as output:
            if words[:1] == ["say"]:
                output.write(" ".join(words[1:]) + "\n")

    def inspect(self, task: Task) -> Condition:
        """Running, frozen, exited or gone."""
        life = self._read(task)
        if life is None:
            return Condition(state="gone")
        code = life.end(self.clock())
        if code is not None:
            return Condition(state="exited", exit_code=code)
        return Condition(state="running" if life.since else "frozen")

    def use(self, task: Task) -> Use:
        """One core while it runs."""
        life = self._read(task)
        return Use() if life is None else Use(cpu_s=life.run_s(self.clock()), memory=MEMORY)

    def strain(self, task: Task) -> Strain:
        """Nothing strains it."""
        return Strain(at=self.clock(), cpu_s=self.use(task).cpu_s, memory=MEMORY)

    def limit(self, task: Task) -> None:
        """Its clock runs on as it did."""

    def pid(self, task: Task) -> int | None:
        """No process runs."""
        return None

    def freezer(self, task: Task) -> dict[str, str]:
        """Nothing that a guard could freeze."""
        return {}

    def freeze(self, task: Task) -> None:
        """Stop its clock."""
        life = self._living(task)
        if life.since:
            self._write(task, Life(words=life.words, ran_s=life.run_s(self.clock())))

    def thaw(self, task: Task) -> None:
        """Let its clock run."""
        life = self._living(task)
        if not life.since:
            self._write(task, Life(words=life.words, ran_s=life.ran_s, since=self.clock()))

    def dump(self, task: Task, images: Path) -> None:
        """Write its seconds down."""
        life = self._living(task)
        if life.words[:1] == ["undumpable"]:
            raise DriverError("dump-failed", "It asked not to be checkpointed.")
        images.mkdir(parents=True, exist_ok=True)
        (images / "life.json").write_text(json.dumps(asdict(life)))

    def restore(self, task: Task, images: Path) -> None:
        """Go on from its seconds, frozen."""
        try:
            life = Life(**json.loads((images / "life.json").read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise DriverError("image-damaged", "The image holds no fake task.") from error
        life.since = 0.0
        self._write(task, life)

    def stop(self, task: Task, grace_s: float) -> None:
        """End it at once."""
        life = self._read(task)
        if life is not None and life.end(self.clock()) is None:
            self._write(task, Life(words=life.words, ended=143 if grace_s else 137))

    def remove(self, task: Task) -> None:
        """Forget it."""
        self._file(task).unlink(missing_ok=True)

    def leftovers(self) -> list[str]:
        """Keys of all tasks that have begun."""
        return sorted(path.parent.name for path in self.state.glob("replicas/*/life.json"))

    def close(self) -> None:
        """Nothing is shared."""

    def _file(self, task: Task) -> Path:
        return task.folder / "life.json"

    def _living(self, task: Task) -> Life:
        life = self._read(task)
        if life is None or life.end(self.clock()) is not None:
            raise DriverError("task-ended", "The task has ended.")
        return life

    def _read(self, task: Task) -> Life | None:
        try:
            return Life(**json.loads(self._file(task).read_text()))
        except FileNotFoundError:
            return None

    def _write(self, task: Task, life: Life) -> None:
        task.folder.mkdir(parents=True, exist_ok=True)
        fresh = self._file(task).with_suffix(".new")
        fresh.write_text(json.dumps(asdict(life)))
        fresh.replace(self._file(task))
