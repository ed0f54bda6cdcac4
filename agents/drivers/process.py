"""A replica as a plain group of processes: for nodes without root or without runc and CRIU.

A keeper, a few lines of shell, starts the command, outlives the agent and writes down the exit
code. What must survive the agent's death lies in ``<folder>/process/``: the keeper's pid with its
start time, and ``exit``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from agents.drivers.base import Condition, DriverError, Strain, Task, Use
from agents.drivers.cgroups import Cgroups, limit_group
from agents.drivers.limits import limit_process
from agents.drivers.trees import ProcessTree, same_process, started_at
from agents.drivers.users import JobUsers
from agents.protocol import Ability

# It waits for "go", so that no command runs before its limits hold and its handle is on disk. The
# trap lets the keeper outlive the signals that are meant for the command; a trapped signal is not
# passed on to children.
KEEPER = """
handle=$1; shift
read -r go || { rm -f "$handle/pid"; exit 125; }
: >"$handle/began"
trap : TERM INT HUP
"$@" </dev/null
code=$?
echo "$code" >"$handle/exit.new" && mv "$handle/exit.new" "$handle/exit"
"""

HESITATION_S = 1.0
CHOSEN = "it was chosen by --driver"


class ProcessDriver:
    """Runs tasks as plain processes; pauses them in place by the freezer, else by SIGSTOP.

    ``why`` says why there are no containers instead.
    """

    name = "process"

    def __init__(self, *, agent: str, state: Path, why: str = CHOSEN) -> None:
        self.still = f"the process driver cannot write memory down ({why})"
        self.shared = f"plain processes share the node's network ({why})"
        self.cgroups = Cgroups(f"tidepool/{agent}")
        self.state = state
        self.users = JobUsers(state)
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def probe(self) -> dict[str, Ability]:
        """It runs and pauses; it says why it does no more."""
        limits = "" if self.cgroups.able else f"limits are rlimits only: {self.cgroups.reason}"
        pause = "" if self.cgroups.able else f"paused by SIGSTOP: {self.cgroups.reason}"
        return {
            "run": Ability(able=True, reason="; ".join(filter(None, (limits, self.users.reason)))),
            "pause": Ability(able=True, reason=pause),
            "checkpoint": Ability(able=False, reason=self.still),
            "migrate": Ability(able=False, reason=self.still),
            "device_checkpoint": Ability(able=False, reason=self.still),
            "network": Ability(able=False, reason=self.shared),
            "profile": self.cgroups.profiles(),
        }

    def start(self, task: Task) -> None:
        """Start the command behind its keeper. ``command-not-found`` if there is none."""
        if self.inspect(task).state != "gone":
            return
        workspace = task.folder / "workspace"
        find_program(task, workspace)
        handle = task.folder / "process"
        handle.mkdir(parents=True, exist_ok=True)
        workspace.mkdir(exist_ok=True)
        prefix = self.users.become(task, workspace)
        with task.output.open("ab") as output:
            keeper = subprocess.Popen(
                ["/bin/sh", "-c", KEEPER, "keeper", str(handle), *prefix, *task.command],
                cwd=workspace,
                env=dict(task.environment),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._children[task.key] = keeper
        try:
            self._confine(task, keeper.pid)
            written = handle / "pid.new"
            written.write_text(json.dumps([keeper.pid, started_at(keeper.pid)]))
            written.rename(handle / "pid")
        except OSError as error:
            keeper.kill()
            raise DriverError("limits-refused", f"The limits could not be set: {error}.") from error
        assert keeper.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            keeper.stdin.write(b"go\n")
            keeper.stdin.close()
        self._begun(task)

    def _confine(self, task: Task, pid: int) -> None:
        if self.cgroups.able:
            self.cgroups.make(
                task.key, cpus=task.cpus, cpuset=task.cpuset, memory=task.memory, pids=task.pids
            )
            self.cgroups.join(task.key, pid)
        limit_process(task, pid, grouped=self.cgroups.able)

    def pid(self, task: Task) -> int | None:
        """The keeper's pid while it lives: its end is the task's end."""
        pid, started = self._handle(task)
        return pid if same_process(pid, started) else None

    def _handle(self, task: Task) -> tuple[int, int]:
        try:
            pid, started = json.loads((task.folder / "process/pid").read_text())
            return int(pid), int(started)
        except (OSError, ValueError):
            return 0, 0

    def _tree(self, task: Task) -> ProcessTree | None:
        """The keeper's session, also after its death; none once its pid is another's."""
        pid, started = self._handle(task)
        return ProcessTree(pid) if pid and started_at(pid) in (0, started) else None

    def freezer(self, task: Task) -> dict[str, str]:
        """How a guard stops this task without the agent: a freezer's folder, or a session."""
        if self.cgroups.able:
            return {"freezer": str(self.cgroups.freezer(task.key))}
        pid = self.pid(task)
        return {"session": str(pid)} if pid else {}

    def inspect(self, task: Task) -> Condition:
        """Running, frozen, exited or gone, from the handle on disk."""
        child = self._children.get(task.key)
        if child is not None and child.poll() is not None:
            del self._children[task.key]
        handle = task.folder / "process"
        code = self._exit_code(handle)
        if code is None and (pid := self._begun(task)) is not None:
            return Condition(state="frozen" if self._frozen(task, pid) else "running")
        code = self._exit_code(handle)
        if code is None and not (handle / "began").exists():
            return Condition(state="gone")
        code = 128 + signal.SIGKILL if code is None else code
        starved = code == 128 + signal.SIGKILL and self.cgroups.ran_out_of_memory(task.key)
        return Condition(state="exited", exit_code=code, out_of_memory=starved)

    def _exit_code(self, handle: Path) -> int | None:
        try:
            return int((handle / "exit").read_text())
        except (OSError, ValueError):
            return None

    def _begun(self, task: Task) -> int | None:
        """The living keeper's pid; one whose agent died before it said go will end itself."""
        pid, end = self.pid(task), time.monotonic() + HESITATION_S
        while pid is not None and time.monotonic() < end:
            if (task.folder / "process/began").exists():
                break
            time.sleep(0.002)
            pid = self.pid(task)
        return pid

    def _frozen(self, task: Task, pid: int) -> bool:
        if self.cgroups.able:
            return self.cgroups.is_frozen(task.key)
        return ProcessTree(pid).stopped()

    def use(self, task: Task) -> Use:
        """From the control group, else summed over the tree of processes."""
        if self.cgroups.able:
            return Use(cpu_s=self.cgroups.cpu_s(task.key), memory=self.cgroups.memory(task.key))
        tree = self._tree(task)
        return tree.use() if tree else Use()

    def strain(self, task: Task) -> Strain:
        """From the control group."""
        return self.cgroups.strain(task.key)

    def limit(self, task: Task) -> None:
        """Write quota and cores into the control group, where there is one."""
        if self.cgroups.able:
            limit_group(self.cgroups, task)

    def freeze(self, task: Task) -> None:
        """Stop every process of the task; ``freeze-failed`` when one cannot be stopped."""
        if self.cgroups.able:
            done = self.cgroups.freeze(task.key, frozen=True)
        else:
            tree = self._tree(task)
            done = tree is not None and tree.stop()
        if not done:
            raise DriverError(
                "freeze-failed", "A process could not be stopped; it may be in the kernel."
            )

    def thaw(self, task: Task) -> None:
        """Let every process of the task go on."""
        if self.cgroups.able:
            self.cgroups.freeze(task.key, frozen=False)
        elif (tree := self._tree(task)) is not None:
            tree.resume()

    def dump(self, task: Task, images: Path) -> None:
        """Not in this driver's power."""
        raise DriverError("checkpoint-unable", f"No checkpoint here: {self.still}.")

    def restore(self, task: Task, images: Path) -> None:
        """Not in this driver's power."""
        raise DriverError("checkpoint-unable", f"No restore here: {self.still}.")

    def stop(self, task: Task, grace_s: float) -> None:
        """SIGTERM, the grace, then SIGKILL until no process is left."""
        if grace_s > 0 and self._signal(task, signal.SIGTERM):
            self.thaw(task)
            end = time.monotonic() + grace_s
            while self.inspect(task).state == "running" and time.monotonic() < end:
                time.sleep(0.01)
        end = time.monotonic() + 10.0
        while self._signal(task, signal.SIGKILL):
            self.thaw(task)
            child = self._children.get(task.key)
            if child is not None:
                child.poll()
            if time.monotonic() > end:
                raise DriverError("stop-failed", "A process did not die of SIGKILL within 10 s.")
            time.sleep(0.005)

    def _signal(self, task: Task, number: signal.Signals) -> bool:
        """Signal every living process of the task; false when there is none."""
        if self.cgroups.able:
            pids = [pid for pid in self.cgroups.processes(task.key) if started_at(pid)]
        else:
            tree = self._tree(task)
            pids = tree.pids() if tree else []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return bool(pids)

    def remove(self, task: Task) -> None:
        """End what runs, then remove the group and the handle."""
        self.stop(task, 0)
        child = self._children.pop(task.key, None)
        if child is not None:
            child.wait(timeout=10)
        if self.cgroups.able:
            self.cgroups.remove(task.key)
        shutil.rmtree(task.folder / "process", ignore_errors=True)

    def leftovers(self) -> list[str]:
        """Keys of the handles and groups that exist."""
        groups = self.cgroups.names() if self.cgroups.able else []
        handles = [path.parent.name for path in self.state.glob("replicas/*/process")]
        return sorted({*groups, *handles})

    def close(self) -> None:
        """Remove the agent's control group if it is empty."""
        self.cgroups.close()


def find_program(task: Task, workspace: Path) -> str:
    """Find the program. Raises ``command-not-found`` or ``command-not-executable``."""
    program = task.command[0] if task.command else ""
    if "/" in program:
        path = workspace / program
        if path.is_file() and not os.access(path, os.X_OK):
            raise DriverError(
                "command-not-executable", f"{program} is not executable; run chmod +x on it."
            )
        found = str(path) if path.is_file() else None
    else:
        found = shutil.which(program, path=task.environment.get("PATH", os.defpath))
    if not found:
        raise DriverError(
            "command-not-found",
            f"There is no program {program!r} on this node; check the spelling or upload it.",
        )
    return found
