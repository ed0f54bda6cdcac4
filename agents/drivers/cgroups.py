"""Control groups for plain processes, version 1 or 2: freeze, count and limit a group of processes.

Used by the process driver where this user may make groups. Files are read and written directly:
each verb is one or two of them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path

from agents.drivers.base import DriverError, Strain, Task
from agents.protocol import Ability

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("freezer", "memory", "pids", "cpu", "cpuacct", "cpuset")
PERIOD_US = 100_000


class Cgroups:
    """The groups of one agent, below ``name`` in every controller that can be written to.

    ``able`` is false where none can be made; ``reason`` says why.
    """

    def __init__(self, name: str, root: Path = ROOT) -> None:
        self.root = root
        self.name = name
        self.unified = (root / "cgroup.controllers").exists()
        self.reason = ""
        try:
            self.controllers = self._prepare()
        except OSError as error:
            self.controllers = ()
            self.reason = f"control groups cannot be made here ({error.strerror})"

    @property
    def able(self) -> bool:
        """Whether groups can be made and frozen."""
        return "freezer" in self.controllers

    def profiles(self) -> Ability:
        """Whether CPUs can be given and taken by these groups, and what was held back be counted.

        It is what measuring a running task takes.
        """
        if not self.able:
            return Ability(able=False, reason=self.reason)
        able = "cpu" in self.controllers
        return Ability(able=able, reason="" if able else "the cpu controller is not writable")

    def _prepare(self) -> tuple[str, ...]:
        if self.unified:
            top = self.root / self.name
            top.mkdir(parents=True, exist_ok=True)
            have = {"freezer"}
            offered = (self.root / "cgroup.controllers").read_text().split()
            for controller in ("memory", "pids", "cpu", "cpuset"):
                if controller not in offered:
                    continue
                with contextlib.suppress(OSError):
                    for above in [*reversed(Path(self.name).parents), Path(self.name)]:
                        (self.root / above / "cgroup.subtree_control").write_text(f"+{controller}")
                    have.add(controller)
            return tuple(c for c in CONTROLLERS if c in have)
        have = {c for c in CONTROLLERS if os.access(self.root / c, os.W_OK)}
        if "freezer" not in have:
            raise PermissionError(13, "the freezer controller is not writable")
        for controller in have:
            (self.root / controller / self.name).mkdir(parents=True, exist_ok=True)
        if "cpuset" in have:
            self._fill_cpuset(self.root / "cpuset" / self.name)
        return tuple(c for c in CONTROLLERS if c in have)

    def _fill_cpuset(self, folder: Path) -> None:
        """A version 1 cpuset starts empty and admits no process until it is filled, top down."""
        for above in [*reversed(folder.relative_to(self.root / "cpuset").parents), None]:
            path = folder if above is None else self.root / "cpuset" / above
            for file in ("cpuset.cpus", "cpuset.mems"):
                if not (path / file).read_text().strip():
                    (path / file).write_text((path.parent / file).read_text())

    def make(self, key: str, *, cpus: float, cpuset: str, memory: int, pids: int) -> None:
        """Make the group of ``key`` with its limits; 0 is no limit."""
        for folder in self._folders(key):
            folder.mkdir(exist_ok=True)
        if self.unified:
            self._limit(key, "memory", "memory.max", str(memory) if memory else "max")
        elif "cpuset" in self.controllers:
            self._fill_cpuset(self._folder(key, "cpuset"))
        if memory and not self.unified:
            self._limit(key, "memory", "memory.limit_in_bytes", str(memory))
        self._limit(key, "pids", "pids.max", str(pids) if pids else "max")
        self.limit(key, cpus=cpus, cpuset=cpuset)

    def limit(self, key: str, *, cpus: float, cpuset: str) -> None:
        """Hold the group to so many CPUs (0: any number) on these cores (empty: as it was)."""
        quota = max(1000, int(cpus * PERIOD_US)) if cpus > 0 else 0
        if self.unified:
            self._limit(key, "cpu", "cpu.max", f"{quota} {PERIOD_US}" if quota else "max")
        else:
            self._limit(key, "cpu", "cpu.cfs_quota_us", str(quota or -1))
        self._limit(key, "cpuset", "cpuset.cpus", cpuset)

    def join(self, key: str, pid: int) -> None:
        """Move process ``pid`` into the group; its children follow."""
        for folder in self._folders(key):
            (folder / "cgroup.procs").write_text(str(pid))

    def processes(self, key: str) -> list[int]:
        """Every process in the group."""
        try:
            return [int(p) for p in (self.freezer(key) / "cgroup.procs").read_text().split()]
        except FileNotFoundError:
            return []

    def freeze(self, key: str, *, frozen: bool, timeout_s: float = 10.0) -> bool:
        """Freeze or thaw the group and wait until it is so; false when that took too long.

        Frozen is who can be dumped: a parent in vfork, which waits for its child to call execve, is
        let go on for a moment.
        """
        folder = self.freezer(key)
        file = folder / ("cgroup.freeze" if self.unified else "freezer.state")
        thaw, freeze = ("0", "1") if self.unified else ("THAWED", "FROZEN")
        end = time.monotonic() + timeout_s
        for attempt in itertools.count(1):
            file.write_text(freeze if frozen else thaw)
            done = self.is_frozen(key) == frozen
            late = time.monotonic() > end
            spawning = done and frozen and self._spawning(key)
            if late or (done and not spawning):
                return done
            time.sleep(0.002)
            if spawning or (freeze == "FROZEN" and frozen and attempt % 50 == 0):
                # A thread in execve waits for the others of its process, which the freezer holds.
                file.write_text(thaw)
                time.sleep(0.01)
        return False

    def _spawning(self, key: str) -> bool:
        """Whether a thread sleeps in the kernel's clone, which it does only in vfork."""
        for pid in self.processes(key):
            for file in Path(f"/proc/{pid}/task").glob("*/wchan"):
                with contextlib.suppress(OSError):
                    if file.read_text() in ("kernel_clone", "wait_for_vfork_done"):
                        return True
        return False

    def is_frozen(self, key: str) -> bool:
        """Whether every process in the group stands still."""
        folder = self.freezer(key)
        with contextlib.suppress(FileNotFoundError):
            if self.unified:
                return "frozen 1" in (folder / "cgroup.events").read_text()
            return (folder / "freezer.state").read_text().strip() == "FROZEN"
        return False

    def cpu_s(self, key: str) -> float:
        """CPU seconds that the group has used."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            if self.unified:
                return int((self.freezer(key) / "cpu.stat").read_text().split()[1]) / 1e6
            return int((self._folder(key, "cpuacct") / "cpuacct.usage").read_text()) / 1e9
        return 0.0

    def memory(self, key: str) -> int:
        """Bytes of anonymous memory that the group holds."""
        stat = self._stat(key, "memory", "memory.stat")
        return stat.get("anon", stat.get("total_rss", 0))

    def strain(self, key: str) -> Strain:
        """How often the group was stopped at its quota, and the cached files it has in use."""
        cpu = self._stat(key, "cpu", "cpu.stat")
        memory = self._stat(key, "memory", "memory.stat")
        return Strain(
            at=time.monotonic(),
            cpu_s=self.cpu_s(key),
            periods=cpu.get("nr_periods", 0),
            held_back=cpu.get("nr_throttled", 0),
            memory=self.memory(key),
            cached=memory.get("total_active_file", memory.get("active_file", 0))
            + memory.get("total_inactive_file", memory.get("inactive_file", 0)),
            waited_s=seconds_waited(self.processes(key)),
            read=bytes_read(self.processes(key)),
        )

    def _stat(self, key: str, controller: str, file: str) -> dict[str, int]:
        """A file of names and numbers; empty when it is not there."""
        with contextlib.suppress(OSError, ValueError):
            text = (self._folder(key, controller) / file).read_text()
            return {name: int(value) for name, value in map(str.split, text.splitlines())}
        return {}

    def ran_out_of_memory(self, key: str) -> bool:
        """Whether the kernel has killed a process of the group for memory."""
        file = "memory.events" if self.unified else "memory.oom_control"
        with contextlib.suppress(OSError):
            for line in (self._folder(key, "memory") / file).read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill" and int(count) > 0:
                    return True
        return False

    def remove(self, key: str) -> None:
        """Remove the group; its processes must be gone (a dying one is waited for, up to 2 s)."""
        end = time.monotonic() + 2.0
        for folder in self._folders(key):
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.005)

    def close(self) -> None:
        """Remove the agent's own group if no task has one in it; runc makes one everywhere."""
        for folder in (self.root / self.name, *self.root.glob(f"*/{self.name}")):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def names(self) -> list[str]:
        """Keys of the groups that exist."""
        top = self.freezer("")
        return sorted(p.name for p in top.iterdir() if p.is_dir()) if top.is_dir() else []

    def freezer(self, key: str) -> Path:
        """The folder whose freezer stops the group."""
        return self._folder(key, "freezer")

    def _folder(self, key: str, controller: str) -> Path:
        return (self.root if self.unified else self.root / controller) / self.name / key

    def _folders(self, key: str) -> list[Path]:
        if self.unified:
            return [self.root / self.name / key] if self.able else []
        return [self._folder(key, controller) for controller in self.controllers]

    def _limit(self, key: str, controller: str, file: str, value: str) -> None:
        if controller in self.controllers and value:
            (self._folder(key, controller) / file).write_text(value)


def limit_group(cgroups: Cgroups, task: Task) -> None:
    """Hold a task's group to its CPUs. Raises ``DriverError``: ``gone`` when there is no group."""
    try:
        cgroups.limit(task.key, cpus=task.cpus, cpuset=task.cpuset)
    except FileNotFoundError:
        raise DriverError("gone", f"There is no control group of {task.key} to limit.") from None
    except OSError as error:
        raise DriverError("limits-refused", f"The CPUs could not be set: {error}.") from error


def bytes_read(pids: list[int]) -> int | None:
    """What these processes have read by calls, cached or not; ``None`` where that is hidden."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            return None
        total += int(lines[0].partition(":")[2])
    return total


def seconds_waited(pids: list[int]) -> float | None:
    """How long the threads of these processes were ready and waited for a core; ``None``: hidden.

    Waiting at the quota counts too.
    """
    if not Path("/proc/self/schedstat").exists():
        return None
    total = 0
    for pid in pids:
        for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError, IndexError, ValueError):
                total += int(file.read_text().split()[1])
    return total / 1e9
