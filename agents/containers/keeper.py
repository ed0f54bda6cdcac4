"""Holds one container's output and exit code while agents come and go. Run as a script.

    python -I -S -E keeper.py BUNDLE OUTPUT COMMAND...

1. Detaches itself: it is in nobody's session and survives whoever started it.
2. Runs COMMAND (runc run or runc restore) with both output streams on one pipe.
3. Tells on its stdout how that went: ``started PID TICKS``, or ``failed`` and the reason.
4. Appends what comes through to OUTPUT until the container is gone, then writes ``BUNDLE/exit``.

One such process lives for every replica, so it imports little. It holds a lock on ``BUNDLE/keeper``
all its life, by which others see that it lives.
"""

# pathlib would cost every replica a megabyte.
# ruff: noqa: PTH104, PTH123

import ctypes
import fcntl
import os
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
CHUNK = 65536


def main() -> None:
    bundle, output, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    if os.fork():
        os._exit(0)
    os.setsid()
    lock = os.open(bundle + "/keeper", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, b"%d" % os.getpid())
    # The container's first process becomes our child when runc leaves: so we learn its exit code.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    reader, writer = os.pipe()
    status = run(command, writer)
    os.close(writer)
    if status != 0:
        os.set_blocking(reader, False)
        report("failed " + (drained(reader) or f"it ended with status {status}"))
        return
    with open(bundle + "/pid") as file:
        pid = int(file.read())
    # runc leaves a moment before its container's first process has become the command.
    while name_of(pid).startswith(b"runc:"):
        time.sleep(0.001)
    told = f"{pid} {start_of(pid)}"
    settle(bundle + "/started", told)
    report("started " + told)
    pump(reader, output)
    settle(bundle + "/exit", str(exit_code_of(pid)))


def run(command: list[str], writer: int) -> int:
    """Run the command with both output streams on the pipe; return its exit status."""
    nothing = os.open("/dev/null", os.O_RDONLY)
    actions = [
        (os.POSIX_SPAWN_DUP2, nothing, 0),
        (os.POSIX_SPAWN_DUP2, writer, 1),
        (os.POSIX_SPAWN_DUP2, writer, 2),
    ]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    os.close(nothing)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def name_of(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read()
    except OSError:
        return b""


def start_of(pid: int) -> int:
    """When it started, in clock ticks since boot: with the pid, a name that is never used twice."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return 0


def pump(reader: int, output: str) -> None:
    """Append until every writer is gone. What a full disk refuses is dropped, not waited for."""
    sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    while chunk := os.read(reader, CHUNK):
        try:
            while chunk:
                chunk = chunk[os.write(sink, chunk) :]
        except OSError:
            pass
    os.close(sink)


def exit_code_of(pid: int) -> int:
    """Wait for the first process; 128 + signal when a signal ended it, 255 when nobody can tell."""
    while True:
        try:
            ended, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return 255
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def drained(reader: int) -> str:
    try:
        return os.read(reader, CHUNK).decode(errors="replace").strip()
    except BlockingIOError:
        return ""


def settle(path: str, text: str) -> None:
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def report(text: str) -> None:
    os.write(1, text.encode())
    nothing = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


if __name__ == "__main__":
    main()
