"""Runs tasks as OCI containers that can be frozen, dumped and restored elsewhere: runc and CRIU.

A container's folder, ``<state>/containers/tasks/<key>``, is made before anything else and removed
after everything else: so all is found again, whenever the agent was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.containers import bundle, host
from agents.containers.bundle import Place
from agents.containers.images import seal, unseal
from agents.containers.keeping import Keeping
from agents.containers.network import JobNetworks
from agents.containers.probe import abilities, obstacle_to_run, unable
from agents.containers.runc import Command, Runc, failure, start_failure
from agents.drivers.base import Condition, DriverError, Strain, Task, Use
from agents.drivers.cgroups import Cgroups, limit_group
from agents.protocol import Ability
from agents.toolchain import Toolchain

ARRIVAL_S = 0.03
"""Seconds between the freeze and the closing of the gate."""
END_S = 30.0
"""Seconds within which a killed container's keeper must be gone."""


class ContainerDriver:
    """The transparent way: whatever the command is, it can be moved while it runs.

    ``agent`` names this agent among those of the machine, ``fleet`` the installation it belongs to:
    agents of one fleet on one machine share the networks of their jobs. ``shares`` are folders of
    the node that every container sees, read-only.
    """

    name = "container"

    def __init__(
        self,
        *,
        state: Path,
        toolchain: Toolchain,
        agent: str,
        underlay: str = "",
        fleet: str = "",
        shares: tuple[Path, ...] = (),
    ) -> None:
        self._state = (state / "containers").absolute()
        self._tasks = self._state / "tasks"
        self._tasks.mkdir(parents=True, exist_ok=True)
        self._state.chmod(0o700)
        self._group = bundle.group_of(fleet, agent)
        self._cgroups = Cgroups(self._group)
        self._toolchain = toolchain
        self._networks = JobNetworks(fleet, agent, underlay)
        self._runc = Runc(toolchain, self._state)
        self._host = host.look(shares)

    def probe(self) -> dict[str, Ability]:
        """Tell what it can do; once a boot, a small container is dumped and restored."""
        tools = self._toolchain
        reason = obstacle_to_run(tools.runc, tools.missing, self._cgroups.reason)
        if reason:
            return {**unable(reason), "profile": Ability(able=False, reason=reason)}
        versions = f"{tools.runc} {tools.criu}"
        found = abilities(self, self._state, versions=versions, obstacle=self._runc.obstacle())
        return {**found, "profile": self._cgroups.profiles()}

    def start(self, task: Task) -> None:
        """Start the command with its gate open."""
        place = self._place(task)
        if Keeping(place.bundle).begun():
            return
        with self._undone_on_failure(task):
            self._prepare(task, bundle.configure(task, place, self._host))
            self._networks.open(task.key, task.network)
            said = self._run(task, self._runc.run(task.key, place.bundle))
            if said:
                raise start_failure(said, task.command[0])

    def inspect(self, task: Task) -> Condition:
        """Tell what it is from the keeper's files and the freezer: no command is run."""
        keeping = self._keeping(task)
        code = keeping.exit_code()
        if code is not None:
            killed = code != 0 and self._cgroups.ran_out_of_memory(task.key)
            return Condition(state="exited", exit_code=code, out_of_memory=killed)
        if not keeping.recorded():
            return Condition(state="gone")
        stopped = (
            self._stopped(task).exists()
            or self._cgroups.is_frozen(task.key)
            or self._runc.dumping(self._place(task).bundle)
        )
        return Condition(state="frozen" if stopped else "running")

    def use(self, task: Task) -> Use:
        """CPU seconds and bytes, from the control group."""
        return Use(cpu_s=self._cgroups.cpu_s(task.key), memory=self._cgroups.memory(task.key))

    def strain(self, task: Task) -> Strain:
        """From the control group."""
        return self._cgroups.strain(task.key)

    def limit(self, task: Task) -> None:
        """Write quota and cores into the control group; the container is not asked."""
        limit_group(self._cgroups, task)

    def freeze(self, task: Task) -> None:
        """Freeze it, then close its gate. ``DriverError`` ``gone`` when it has ended meanwhile.

        The gate stays open for a moment longer, until the job's other replicas should be frozen too
        and what they sent has arrived: a restored connection resends only after a second.
        """
        self._hold(task)
        if task.network is not None:
            time.sleep(ARRIVAL_S)
            self._networks.close(task.key)

    def thaw(self, task: Task) -> None:
        """Open the gate, then let it run."""
        self._hold_restored(task)
        self._networks.open(task.key, task.network)
        self._set_frozen(task, frozen=False)

    def dump(self, task: Task, images: Path) -> None:
        """Write memory, and what the container was, below ``images``; it stays frozen."""
        if self._toolchain.criu is None:
            raise DriverError("checkpoint-unable", "; ".join(self._toolchain.missing))
        self._hold_restored(task)
        place = self._place(task)
        images.mkdir(parents=True, exist_ok=True)
        bundle.tell_criu(place)
        config = json.loads((place.bundle / "config.json").read_text())
        user = config["process"]["user"]["uid"]
        self._runc.checkpoint(task.key, place.bundle, images.absolute(), user)
        seal(images, config)

    def restore(self, task: Task, images: Path) -> None:
        """Make it again behind a closed gate: CRIU leaves it stopped, then it is frozen.

        In the end its gate opens: its connections are there, and whoever of the job is thawed first
        finds it. It takes no step until it is thawed itself.
        """
        place = self._place(task)
        if Keeping(place.bundle).begun():
            self._hold_restored(task)
            return
        dumped = unseal(images)
        with self._undone_on_failure(task):
            self._prepare(task, bundle.reconfigure(dumped, task, place, self._host))
            bundle.tell_criu(place, leave_stopped=True)
            self._stopped(task).touch()
            said = self._run(task, self._runc.restore(task.key, place.bundle, images.absolute()))
            if said:
                log = place.bundle / "work" / "restore.log"
                raise failure("restore-failed", "The replica cannot be restored here", log, said)
            self._hold_restored(task)
            self._networks.open(task.key, task.network)

    def stop(self, task: Task, grace_s: float) -> None:
        """Ask every process to end, then kill them.

        PID 1 of a container is deaf to signals that it does not handle: when nobody else is left to
        wait for, the grace is cut short.
        """
        keeping = self._keeping(task)
        if grace_s > 0 and self.inspect(task).state == "running":
            deaf = keeping.deaf()
            self._signal(task, signal.SIGTERM)
            end = time.monotonic() + grace_s
            while keeping.alive() and time.monotonic() < end:
                if deaf and self._cgroups.processes(task.key) == [keeping.pid()]:
                    break
                time.sleep(0.01)
        self._kill(task)
        end = time.monotonic() + END_S
        while self.inspect(task).state in ("running", "frozen") and time.monotonic() < end:
            time.sleep(0.002)

    def remove(self, task: Task) -> None:
        """Remove container, network, control groups and folder, whatever there is of them."""
        place = self._place(task)
        if not place.bundle.exists():
            return
        keeping = Keeping(place.bundle)
        keeping.begun(END_S)
        self._kill(task)
        keeping.wait(END_S)
        self._runc.delete(task.key)
        self._cgroups.remove(task.key)
        self._networks.remove(task.key, place.netns)
        shutil.rmtree(place.bundle)

    def leftovers(self) -> list[str]:
        """Keys of the containers of this agent, in whatever condition they are."""
        self._networks.sweep()
        return sorted(path.name for path in self._tasks.iterdir())

    def close(self) -> None:
        """Remove the agent's control group if it is empty."""
        self._cgroups.close()

    def pid(self, task: Task) -> int | None:
        """The container's first process, while it lives."""
        keeping = self._keeping(task)
        return keeping.pid() if keeping.alive() else None

    def freezer(self, task: Task) -> dict[str, str]:
        """The folder whose freezer stops the container."""
        return {"freezer": str(self._cgroups.freezer(task.key))}

    @contextlib.contextmanager
    def _undone_on_failure(self, task: Task) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.remove(task)
            raise

    def _place(self, task: Task) -> Place:
        folder = self._tasks / task.key
        return Place(bundle=folder, cgroup=f"/{self._group}/{task.key}", netns=folder / "netns")

    def _keeping(self, task: Task) -> Keeping:
        return Keeping(self._place(task).bundle)

    def _stopped(self, task: Task) -> Path:
        """Marks a restored container that may still be stopped, and must not count as running."""
        return self._place(task).bundle / "stopped"

    def _prepare(self, task: Task, config: Mapping[str, Any]) -> None:
        """Put everything there that runc needs; what an interrupted attempt has left goes first."""
        place = self._place(task)
        self.remove(task)
        (place.bundle / "work").mkdir(parents=True)
        self._networks.make(task.key, place.netns, task.network)
        bundle.write(config, task, place, self._host)
        workspace = task.folder / "workspace"
        workspace.mkdir(parents=True, exist_ok=True)
        give(workspace, config["process"]["user"]["uid"])

    def _run(self, task: Task, command: Command) -> str:
        return self._keeping(task).run(command, task.output.absolute())

    def _hold_restored(self, task: Task) -> None:
        """Turn the stop that CRIU leaves behind into a freeze."""
        if self._stopped(task).exists():
            self._hold(task)

    def _hold(self, task: Task) -> None:
        self._set_frozen(task, frozen=True)
        if self._stopped(task).exists():
            # They are frozen: this only takes the stop from them, they go on when they are thawed.
            self._signal(task, signal.SIGCONT)
            self._stopped(task).unlink()

    def _set_frozen(self, task: Task, *, frozen: bool) -> None:
        word = "freeze" if frozen else "thaw"
        self._runc.await_dump(self._place(task).bundle)
        try:
            done = self._cgroups.freeze(task.key, frozen=frozen)
        except FileNotFoundError:
            raise DriverError("gone", f"There is no container {task.key} to {word}.") from None
        if not done:
            raise DriverError(
                f"{word}-failed",
                f"The kernel did not {word} {task.key}: look for processes in state D.",
            )

    def _kill(self, task: Task) -> None:
        # All of them, before a frozen one is thawed: none may take another step.
        self._signal(task, signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError):
            self._cgroups.freeze(task.key, frozen=False)

    def _signal(self, task: Task, number: signal.Signals) -> None:
        for pid in self._cgroups.processes(task.key):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def give(folder: Path, user: int) -> None:
    """Give a folder with all that is in it to a user; quick when it was already given."""
    if folder.stat().st_uid == user:
        return
    for path in folder.rglob("*"):
        os.chown(path, user, user, follow_symlinks=False)
    # Last, because it says that the others are done.
    os.chown(folder, user, user)
