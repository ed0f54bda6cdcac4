"""The runc and CRIU commands of one agent: their words, their surroundings, their errors."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from agents.drivers.base import DriverError
from agents.toolchain import Toolchain

CAP_SYS_RESOURCE = 24
TMPFS_MAGIC = 0x01021994
TIMEOUT_S = 600.0
LOCK = "dumping"
"""A file beside the container whose lock a dump holds."""
CRIU_OPTIONS = ("--tcp-established", "--file-locks", "--manage-cgroups-mode", "soft")
HARMLESS = re.compile(r"Can't setup RLIMIT_NOFILE|Can't keep kdat cache")
CRIU_ERROR = re.compile(r"^\([\d.]+\)\s*(?:\d+: )?Error \([^)]*\): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Command:
    """Words to run and the environment to run them in."""

    words: tuple[str, ...]
    environment: dict[str, str]


class Runc:
    """Makes and runs the commands; knows what CRIU needs beyond them on this machine.

    * CRIU measures the kernel at every start unless it may keep what it found in a tmpfs at /run.
      Where /run is none, it gets one of its own, with the measurement of this boot in it.
    * Reading the limits of another user's process needs CAP_SYS_RESOURCE. Where even root lacks it,
      CRIU dumps with the container's user as its real user, which the kernel accepts as well.
    """

    def __init__(self, toolchain: Toolchain, state: Path) -> None:
        self._toolchain = toolchain
        self._root = state / "runc"
        self._measured = state / f"criu-{_boot()}.kdat"
        self._lends_user = not _has_capability(CAP_SYS_RESOURCE)
        self._own_run = not _is_tmpfs(Path("/run"))
        self._shim = state / "bin"

    def obstacle(self) -> str:
        """Why containers cannot be dumped here; empty when they can. Runs ``criu check``."""
        if self._toolchain.criu is None:
            return "; ".join(self._toolchain.missing) or "criu is not installed"
        needed = [
            *(["unshare"] if self._own_run else []),
            *(["setpriv"] if self._lends_user else []),
        ]
        for program in ["tar", "gzip", *needed]:
            if shutil.which(program, path=self._toolchain.path) is None:
                return f"{program} is not installed"
        try:
            done = self._measure()
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"criu check does not run: {error}"
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines()
            return f"criu check fails: {lines[-1] if lines else done.returncode}"
        return ""

    def run(self, key: str, bundle: Path) -> Command:
        """Start a container and leave."""
        options = ["--detach", "--pid-file", str(bundle / "pid"), "--bundle", str(bundle)]
        return self._command("run", *options, key)

    def restore(self, key: str, bundle: Path, images: Path) -> Command:
        """Restore a container and leave."""
        options = ["--detach", "--pid-file", str(bundle / "pid"), "--bundle", str(bundle)]
        paths = ["--image-path", str(images), "--work-path", str(bundle / "work")]
        return self._beside_measurement(
            self._command("restore", *options, *paths, *CRIU_OPTIONS, key)
        )

    def checkpoint(self, key: str, bundle: Path, images: Path, user: int) -> None:
        """Dump a frozen container, which stays as it is. Raises DriverError ``dump-failed``.

        It outlives the agent: CRIU killed half-way would let the processes run on, with connections
        that refuse every word. One that an agent has left behind ends first: runc has its lock.
        """
        paths = ["--image-path", str(images), "--work-path", str(bundle / "work")]
        command = self._command("checkpoint", *paths, *CRIU_OPTIONS, "--leave-running", key)
        if self._lends_user:
            command = self._lending(command, user)
        with (bundle / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = self._finish(self._beside_measurement(command), keep=lock.fileno())
        if done.returncode != 0:
            log = bundle / "work" / "dump.log"
            raise failure("dump-failed", "The replica's memory cannot be dumped", log, done.stderr)

    def dumping(self, bundle: Path) -> bool:
        """Whether a dump is under way, whoever began it. CRIU then holds the container stopped."""
        try:
            with (bundle / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def await_dump(self, bundle: Path) -> None:
        """Wait until no dump is under way: CRIU must be alone with the container's freezer."""
        with contextlib.suppress(FileNotFoundError), (bundle / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)

    def delete(self, key: str) -> None:
        """End a container and remove what runc made for it; one that is not there is no error."""
        if (self._root / key).exists():
            done = self._finish(self._command("delete", "--force", key))
            if done.returncode != 0 and (self._root / key).exists():
                raise DriverError("remove-failed", f"runc cannot remove {key}: {done.stderr}")

    def _command(self, verb: str, *rest: str) -> Command:
        runc = str(self._toolchain.runc)
        log = self._root.parent / "runc.log"
        words = (runc, "--root", str(self._root), "--log", str(log), verb, *rest)
        return Command(words, {"PATH": self._toolchain.path})

    def _beside_measurement(self, command: Command) -> Command:
        """Run it in a mount namespace whose /run is a tmpfs that holds CRIU's measurement."""
        if not self._own_run:
            return command
        if not self._measured.exists():
            self._measure()
        kept = shlex.quote(str(self._measured))
        script = f'mount -t tmpfs run /run && cp {kept} /run/criu.kdat && exec "$@"'
        words = ("unshare", "--mount", "--propagation", "slave", "/bin/sh", "-c", script, "sh")
        return Command(self._found(*words, *command.words), command.environment)

    def _lending(self, command: Command, user: int) -> Command:
        """Have runc find a ``criu`` that takes the container's user as its real one."""
        self._shim.mkdir(parents=True, exist_ok=True)
        shim = self._shim / "criu"
        if not shim.exists():
            (setpriv,) = self._found("setpriv")
            criu = shlex.quote(str(self._toolchain.criu))
            script = f'exec {setpriv} --ruid "$LENT" --rgid "$LENT" --keep-groups {criu} "$@"'
            shim.write_text(f"#!/bin/sh\n{script}\n")
            shim.chmod(0o755)
        path = f"{self._shim}:{command.environment['PATH']}"
        return Command(command.words, {"PATH": path, "LENT": str(user)})

    def _measure(self) -> subprocess.CompletedProcess[str]:
        criu = shlex.quote(str(self._toolchain.criu))
        if not self._own_run:
            return self._finish(Command((str(self._toolchain.criu), "check"), {}))
        kept = shlex.quote(str(self._measured))
        script = (
            f"mount -t tmpfs run /run && {criu} check && "
            f"cp /run/criu.kdat {kept}.$$ && mv {kept}.$$ {kept}"
        )
        words = ("unshare", "--mount", "--propagation", "slave", "/bin/sh", "-c", script)
        return self._finish(Command(self._found(*words), {"PATH": self._toolchain.path}))

    def _found(self, program: str, *rest: str) -> tuple[str, ...]:
        return (shutil.which(program, path=self._toolchain.path) or program, *rest)

    def _finish(
        self, command: Command, keep: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command.words,
            env=command.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
            pass_fds=() if keep is None else (keep,),
            start_new_session=True,
        )


def failure(id: str, sentence: str, log: Path, said: str) -> DriverError:
    """The error with the first reason in CRIU's log, else with what the command said."""
    text = log.read_text(errors="replace") if log.exists() else ""
    reasons = [r for r in CRIU_ERROR.findall(text) if not HARMLESS.search(r)]
    if "No space left on device" in text + said:
        return DriverError(
            "disk-full", f"{sentence}: the disk is full. Free some space on the node."
        )
    reason = reasons[0] if reasons else said.strip() or "no reason was given"
    return DriverError(id, f"{sentence}: {reason}")


def start_failure(said: str, command: str) -> DriverError:
    """Why ``runc run`` did not start the command."""
    if re.search(r"executable file not found|exec: .*no such file or directory", said):
        return DriverError(
            "command-not-found",
            f"The command {command!r} is not in the container's PATH: check its spelling, or add "
            "it to the job's files and call it by its path.",
        )
    if re.search(r"exec: .*permission denied|exec format error", said):
        return DriverError(
            "command-not-executable",
            f"The command {command!r} may not be executed: make it executable, or run it with "
            "its interpreter.",
        )
    return DriverError("start-failed", f"The container cannot be started: {said}")


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _has_capability(number: int) -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


def _is_tmpfs(path: Path) -> bool:
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    kinds = {fields[1]: fields[2] for fields in map(str.split, mounts)}
    return kinds.get(os.path.realpath(path)) == "tmpfs"
