"""The container driver keeps the contract, and its containers keep to their bounds."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.containers.bundle import user_of
from agents.containers.keeping import Keeping
from agents.drivers.base import DriverError
from agents.drivers.container import ContainerDriver
from tests.agents.containers.conftest import MakeDriver, MakeTask, ended, lines, python
from tests.agents.contract import DriverContract, until

pytestmark = [pytest.mark.criu, pytest.mark.slow]

ALLOCATE = "block = b'x' * (1 << 28); print(len(block))"
FORK_BOMB = """
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError as error:
        print(error.strerror, flush=True)
        time.sleep(1000)
"""


class TestContract(DriverContract):
    @pytest.fixture(autouse=True)
    def _made(self, make_driver: MakeDriver) -> Iterator[None]:
        self.make_driver = make_driver
        yield

    def new_driver(self, state: Path) -> ContainerDriver:
        return self.make_driver()


def test_it_runs_unprivileged_in_its_workspace(
    driver: ContainerDriver, make_task: MakeTask
) -> None:
    source = """
import json, os, socket
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
def refused(act):
    try:
        return not act()
    except OSError as error:
        return error.strerror
open("mine", "w").write("x")
print(json.dumps({
    "user": os.getuid(), "cwd": os.getcwd(), "name": socket.gethostname(), "pid": os.getpid(),
    "address": socket.gethostbyname(socket.gethostname()),
    "capabilities": int(status["CapBnd"], 16), "privileges": int(status["NoNewPrivs"]),
    "filter": int(status["Seccomp"]),
    "root": refused(lambda: open("/mine", "w")), "usr": refused(lambda: open("/usr/mine", "w")),
    "chroot": refused(lambda: os.chroot("/")),
    "homes": os.listdir("/root") if os.path.exists("/root") else [],
    "tmp": os.listdir("/tmp"), "fds": sorted(map(int, os.listdir("/proc/self/fd")))[:-1],
    "interfaces": [name for _, name in socket.if_nameindex()],
}))
"""
    task = make_task(*python(source), job=5)
    driver.start(task)
    assert ended(driver, task) == 0, task.output.read_text()
    seen = json.loads(lines(task)[-1])
    user = user_of(task.key)
    assert seen["user"] == user
    assert (task.folder / "workspace" / "mine").stat().st_uid == user
    assert (seen["cwd"], seen["name"], seen["pid"]) == ("/workspace", "j5-r0", 1)
    assert seen["address"] == "127.0.0.1"
    assert (seen["capabilities"], seen["privileges"], seen["filter"]) == (0, 1, 2)
    assert seen["root"] == seen["usr"] == "Read-only file system"
    assert seen["chroot"] == "Operation not permitted"
    assert seen["homes"] in ([], [".pyenv"]), "of the homes, nothing but the interpreter is shown"
    assert seen["tmp"] == [] or str(sys.prefix).startswith("/tmp/")
    assert seen["fds"] == [0, 1, 2]
    assert seen["interfaces"] == ["lo"]


def test_calls_that_cannot_be_dumped_or_trusted_are_refused(
    driver: ContainerDriver, make_task: MakeTask
) -> None:
    source = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for number in (425, 435, 272, 165):  # io_uring_setup, clone3, unshare, mount
    libc.syscall(number, 0, 0, 0, 0, 0)
    print(os.strerror(ctypes.get_errno()))
"""
    task = make_task(*python(source))
    driver.start(task)
    ended(driver, task)
    absent, forbidden = "Function not implemented", "Operation not permitted"
    assert lines(task) == [absent, absent, forbidden, forbidden]


def test_too_much_memory_is_told_apart(driver: ContainerDriver, make_task: MakeTask) -> None:
    task = make_task(*python(ALLOCATE), memory=64 << 20)
    driver.start(task)
    assert ended(driver, task) == 128 + signal.SIGKILL
    assert driver.inspect(task).out_of_memory


def test_a_fork_bomb_stops_at_its_limit(driver: ContainerDriver, make_task: MakeTask) -> None:
    task = make_task(*python(FORK_BOMB), pids=24)
    driver.start(task)
    until(lambda: "Resource temporarily unavailable" in lines(task))
    driver.stop(task, 0.0)
    assert driver.inspect(task).state == "exited"


def test_a_file_that_may_not_be_executed_is_named(
    driver: ContainerDriver, make_task: MakeTask
) -> None:
    task = make_task("./train.py")
    (task.folder / "workspace" / "train.py").write_text("print('hello')")
    with pytest.raises(DriverError) as refusal:
        driver.start(task)
    assert refusal.value.id == "command-not-executable"
    assert driver.leftovers() == []


def test_a_handler_has_its_grace(driver: ContainerDriver, make_task: MakeTask) -> None:
    source = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(7)))
print("ready", flush=True)
while True:
    signal.pause()
"""
    task = make_task(*python(source))
    driver.start(task)
    until(lambda: lines(task) == ["ready"])
    driver.stop(task, 30.0)
    assert driver.inspect(task).exit_code == 7
    assert lines(task) == ["ready", "saved"]


def test_the_keeper_outlives_its_agent(
    driver: ContainerDriver, make_driver: MakeDriver, make_task: MakeTask, tmp_path: Path
) -> None:
    """An agent of another process starts a container and is killed; the next one finds it all."""
    source = """
import sys, time
for number in range(400):
    print(number, flush=True); time.sleep(0.01)
sys.exit(5)
"""
    task = make_task(*python(source))
    agent = """
import os, signal, sys
from pathlib import Path
from agents.drivers.base import Task
from agents.drivers.container import ContainerDriver
from agents.toolchain import Toolchain
runc, criu, path, state, agent, fleet, folder, key, *command = sys.argv[1:]
tools = Toolchain(runc=Path(runc), criu=Path(criu), path=path)
driver = ContainerDriver(state=Path(state), toolchain=tools, agent=agent, fleet=fleet)
folder = Path(folder)
driver.start(Task(key=key, folder=folder, output=folder / "output", command=tuple(command),
    environment={}, cpus=1.0))
os.kill(os.getpid(), signal.SIGKILL)
"""
    tools = driver._toolchain
    words = [tools.runc, tools.criu, tools.path, tmp_path / "a", "a"]
    fleet = driver._group.removeprefix("tidepool/").removesuffix("-a")
    rest = [fleet, task.folder, task.key, *task.command]
    died = subprocess.run([sys.executable, "-c", agent, *map(str, [*words, *rest])], check=False)
    assert died.returncode == -signal.SIGKILL
    again = make_driver()
    assert again.leftovers() == [task.key]
    assert again.inspect(task).state == "running"
    again.start(task)
    assert ended(again, task) == 5
    assert lines(task) == [str(i) for i in range(400)]


def test_a_container_whose_keeper_was_killed_still_ends(
    driver: ContainerDriver, make_task: MakeTask
) -> None:
    task = make_task("sleep", "1000")
    driver.start(task)
    keeping = Keeping(driver._tasks / task.key)
    os.kill(int((driver._tasks / task.key / "keeper").read_text()), signal.SIGKILL)
    until(lambda: not keeping.watched())
    assert driver.inspect(task).state == "running"
    driver.stop(task, 0.0)
    assert driver.inspect(task).exit_code == 255
    driver.remove(task)
    assert driver.inspect(task).state == "gone"


def test_a_start_that_was_cut_short_is_begun_anew(
    driver: ContainerDriver, make_task: MakeTask
) -> None:
    task = make_task("echo", "hello")
    (driver._tasks / task.key / "rootfs").mkdir(parents=True)
    assert driver.inspect(task).state == "gone"
    driver.start(task)
    assert ended(driver, task) == 0
    assert lines(task) == ["hello"]


def test_its_cpus_are_given_and_taken_while_it_runs(
    driver: ContainerDriver, make_task: MakeTask
) -> None:
    task = make_task(*python("while True: pass"))
    driver.start(task)
    driver.limit(dataclasses.replace(task, cpus=0.02))
    before = driver.strain(task)
    until(lambda: driver.strain(task).held_back > before.held_back, "nothing held it back")
    driver.limit(task)
    until(lambda: driver.strain(task).cpu_s > before.cpu_s + 0.2, "it stayed held back")
    assert driver.strain(task).memory > 1 << 20
