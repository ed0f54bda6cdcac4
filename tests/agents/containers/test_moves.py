"""What runs is dumped, removed and restored elsewhere, and goes on from the very step."""

from __future__ import annotations

import os
import select
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from agents.checkpoints import Base, fetch_image, open_store, store_image
from agents.drivers.base import DriverError, Task
from agents.drivers.cgroups import ROOT
from agents.drivers.container import ContainerDriver
from agents.protocol import Network
from tests.agents.containers.conftest import MakeDriver, MakeTask, ended, lines, python
from tests.agents.contract import until
from tests.fleets.disk import SmallDisk

pytestmark = [pytest.mark.criu, pytest.mark.slow]

TRAIN = """
import hashlib, sys, tempfile, time
import numpy as np
steps, pause = int(sys.argv[1]), float(sys.argv[2])
draw = np.random.default_rng(7)
weights = draw.normal(size=(64, 64))
notes = open("notes.txt", "a")
scratch = tempfile.TemporaryFile()
for step in range(steps):
    weights = np.tanh(weights @ draw.normal(size=(64, 64)) / 8)
    notes.write(f"{step}\\n"); notes.flush()
    scratch.write(b"x"); scratch.flush()
    print(step, flush=True)
    time.sleep(pause)
print(hashlib.sha256(weights.tobytes()).hexdigest(), scratch.tell(), flush=True)
"""
SERVE = """
import socket
listener = socket.create_server(("0.0.0.0", 7000))
connection, _ = listener.accept()
total = 0
while data := connection.recv(8, socket.MSG_WAITALL):
    total = (total * 31 + int.from_bytes(data, "big")) % 2**61
    connection.sendall(total.to_bytes(8, "big"))
print(total, flush=True)
"""
ASK = """
import socket, sys, time
while True:
    try:
        connection = socket.create_connection((sys.argv[1], 7000)); break
    except OSError:
        time.sleep(0.01)
for number in range(int(sys.argv[2])):
    connection.sendall(number.to_bytes(8, "big"))
    answer = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "big")
    print(number, flush=True)
    time.sleep(0.005)
print(answer, flush=True)
"""


def test_a_training_moves_thrice_and_ends_with_equal_weights(
    make_driver: MakeDriver, make_task: MakeTask, tmp_path: Path
) -> None:
    steps = 300
    words = (*python(TRAIN), str(steps))
    undisturbed = subprocess.run((*words, "0"), capture_output=True, text=True, cwd=tmp_path)
    drivers = [make_driver("a"), make_driver("b")]
    network = Network(number=5, address="10.77.0.3/24")
    task = make_task(*words, "0.01", network=network, memory=1 << 30)
    drivers[0].start(task)
    store, base = open_store(tmp_path / "store"), None
    for move in range(1, 4):
        wait_for(task, 40 * move)
        here, there = drivers[(move - 1) % 2], drivers[move % 2]
        here.freeze(task)
        steps_done = lines(task)
        images = tmp_path / f"images-{move}"
        here.dump(task, images)
        assert here.inspect(task).state == "frozen"
        here.remove(task)
        # From the second time on, what is restored leans on the dump before it.
        stored = store_image(store, images, task.folder / "workspace")
        lean = tmp_path / f"lean-{move}"
        fetched = fetch_image(store, stored.manifest_key, lean, None, base=base)
        assert base is None or fetched.bytes_fetched < 0.5 * fetched.bytes_raw
        base = Base(images=images, manifest=stored.manifest)
        memory = (1 << 30) + move * 4096
        task = replace(task, key=f"j1-r0-e{move + 1}", memory=memory, pids=100 + move)
        there.restore(task, lean)
        assert there.inspect(task).state == "frozen"
        assert lines(task) == steps_done, "it takes no step before it is thawed"
        assert limits(there, task) == (task.memory, task.pids)
        there.thaw(task)
    assert ended(drivers[1], task) == 0, task.output.read_text()
    assert lines(task) == undisturbed.stdout.splitlines()
    notes = (task.folder / "workspace" / "notes.txt").read_text().split()
    assert notes == [str(step) for step in range(steps)]


def wait_for(task: Task, count: int) -> None:
    """Wait until it has written more lines than this."""
    until(lambda: len(lines(task)) > count, "it came to a halt")


def limits(driver: ContainerDriver, task: Task) -> tuple[int, int]:
    """What its control groups hold it to, in bytes and processes."""
    unified = (ROOT / "cgroup.controllers").exists()
    group = f"{driver._group}/{task.key}"
    memory = f"{group}/memory.max" if unified else f"memory/{group}/memory.limit_in_bytes"
    pids = f"{group}/pids.max" if unified else f"pids/{group}/pids.max"
    return int((ROOT / memory).read_text()), int((ROOT / pids).read_text())


def test_what_was_dumped_goes_on_when_it_is_thawed(
    driver: ContainerDriver, make_task: MakeTask, tmp_path: Path
) -> None:
    task = make_task(*python(TRAIN), "100000", "0.001")
    driver.start(task)
    for number in range(2):
        wait_for(task, len(lines(task)) + 10)
        driver.freeze(task)
        driver.dump(task, tmp_path / f"images-{number}")
        seen = len(lines(task))
        driver.thaw(task)
        wait_for(task, seen)
    steps = [line for line in lines(task) if line.isdigit()]
    assert steps == [str(step) for step in range(len(steps))]


def test_a_live_connection_moves_with_both_its_ends(
    make_driver: MakeDriver, make_task: MakeTask, tmp_path: Path
) -> None:
    """Two agents of one machine; namespaces are gone in between; the ends swap places."""
    drivers = [make_driver("a"), make_driver("b")]
    questions = 400
    networks = [Network(number=6, address=f"10.77.0.{2 + rank}/24") for rank in range(2)]
    ends = [
        make_task(*python(SERVE), network=networks[0]),
        make_task(*python(ASK), "10.77.0.2", str(questions), rank=1, network=networks[1]),
    ]
    for driver, task in zip(drivers, ends, strict=True):
        driver.start(task)
    for move in range(1, 4):
        wait_for(ends[1], 60 * move)
        for driver, task in zip(drivers, ends, strict=True):
            driver.freeze(task)
        for driver, task in zip(drivers, ends, strict=True):
            driver.dump(task, tmp_path / f"{task.key}-images")
        for driver, task in zip(drivers, ends, strict=True):
            driver.remove(task)
        drivers.reverse()
        moved = [replace(task, key=f"j1-r{rank}-e{move + 1}") for rank, task in enumerate(ends)]
        for driver, task, before in zip(drivers, moved, ends, strict=True):
            driver.restore(task, tmp_path / f"{before.key}-images")
        ends = moved
        for driver, task in zip(drivers, ends, strict=True):
            driver.thaw(task)
    assert [ended(d, t) for d, t in zip(drivers, ends, strict=True)] == [0, 0]
    assert lines(ends[1])[:-1] == [str(number) for number in range(questions)]
    assert lines(ends[1])[-1] == lines(ends[0])[-1]


def test_several_processes_and_threads_move_together(
    driver: ContainerDriver, make_task: MakeTask, tmp_path: Path
) -> None:
    source = """
import multiprocessing, threading, time
def count(name):
    for number in range(150):
        print(f"{name} {number}\\n", end="", flush=True); time.sleep(0.01)
fork = multiprocessing.get_context("fork")
children = [fork.Process(target=count, args=(f"p{i}",)) for i in range(2)]
children.append(threading.Thread(target=count, args=("t0",)))
[child.start() for child in children]
[child.join() for child in children]
"""
    task = make_task(*python(source))
    driver.start(task)
    until(lambda: len(lines(task)) > 60)
    driver.freeze(task)
    driver.dump(task, tmp_path / "images")
    driver.remove(task)
    task = replace(task, key="j1-r0-e2")
    driver.restore(task, tmp_path / "images")
    driver.thaw(task)
    assert ended(driver, task) == 0
    everything = [f"{name} {number}" for name in ("p0", "p1", "t0") for number in range(150)]
    assert sorted(lines(task)) == sorted(everything)


def test_a_dump_that_fails_leaves_it_untouched(
    driver: ContainerDriver, make_task: MakeTask, tmp_path: Path
) -> None:
    task = make_task(*python(TRAIN), "100000", "0.01")
    driver.start(task)
    until(lambda: len(lines(task)) > 3)
    driver.freeze(task)
    images = tmp_path / "images"
    images.mkdir()
    (images / "pages-1.img").mkdir()
    with pytest.raises(DriverError) as failure:
        driver.dump(task, images)
    assert failure.value.id == "dump-failed"
    assert driver.inspect(task).state == "frozen"
    seen = len(lines(task))
    driver.thaw(task)
    until(lambda: len(lines(task)) > seen)


def test_a_dump_whose_pages_nobody_takes_any_more_leaves_its_connections_alone(
    driver: ContainerDriver, make_task: MakeTask, tmp_path: Path
) -> None:
    networks = [Network(number=6, address=f"10.77.0.{2 + rank}/24") for rank in range(2)]
    ends = [
        make_task(*python(SERVE), network=networks[0]),
        make_task(*python(ASK), "10.77.0.2", "100000", rank=1, network=networks[1]),
    ]
    for task in ends:
        driver.start(task)
    wait_for(ends[1], 20)
    for task in ends:
        driver.freeze(task)
    (tmp_path / "images").mkdir()
    pipe = tmp_path / "images" / "pages-1.img"
    os.mkfifo(pipe)
    taking = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def die() -> None:
        select.select([taking], [], [])
        os.close(taking)

    killed = threading.Thread(target=die)
    killed.start()
    with pytest.raises(DriverError) as failure:
        driver.dump(ends[0], tmp_path / "images")
    killed.join()
    assert failure.value.id == "dump-failed"
    seen = len(lines(ends[1]))
    for task in ends:
        driver.thaw(task)
    wait_for(ends[1], seen + 20)


def test_a_dump_onto_a_full_disk_says_so_and_the_command_runs_on(
    driver: ContainerDriver, make_task: MakeTask, tmp_path: Path
) -> None:
    task = make_task(*python(TRAIN), "100000", "0.01")
    driver.start(task)
    until(lambda: len(lines(task)) > 3)
    with SmallDisk(tmp_path / "images", size=1024**2):
        driver.freeze(task)
        with pytest.raises(DriverError) as failure:
            driver.dump(task, tmp_path / "images")
        assert failure.value.id == "disk-full"
        assert driver.inspect(task).state == "frozen"
    seen = len(lines(task))
    driver.thaw(task)
    until(lambda: len(lines(task)) > seen)


def test_a_truncated_image_is_refused_and_nothing_is_left(
    driver: ContainerDriver, make_task: MakeTask, tmp_path: Path
) -> None:
    task = make_task("sleep", "1000")
    driver.start(task)
    driver.freeze(task)
    driver.dump(task, tmp_path / "images")
    driver.remove(task)
    (pages,) = (tmp_path / "images").glob("pages-*.img")
    pages.write_bytes(pages.read_bytes()[:4096])
    with pytest.raises(DriverError) as failure:
        driver.restore(task, tmp_path / "images")
    assert failure.value.id == "image-damaged"
    assert driver.inspect(task).state == "gone"
    assert driver.leftovers() == []


def test_a_restore_that_was_cut_short_does_not_count_as_running(
    driver: ContainerDriver, make_task: MakeTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task(*python(TRAIN), "100000", "0.001")
    driver.start(task)
    until(lambda: len(lines(task)) > 10)
    driver.freeze(task)
    driver.dump(task, tmp_path / "images")
    driver.remove(task)
    with monkeypatch.context() as patch:
        patch.setattr(ContainerDriver, "_hold_restored", lambda self, task: None)
        driver.restore(task, tmp_path / "images")
    seen = len(lines(task))
    assert driver.inspect(task).state == "frozen"
    driver.restore(task, tmp_path / "images")
    assert len(lines(task)) == seen
    driver.thaw(task)
    until(lambda: len(lines(task)) > seen)
