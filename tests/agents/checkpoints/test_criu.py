"""Images that CRIU really wrote are understood; a later dump of a process is mostly old."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.checkpoints import Store, fetch_image, store_image
from agents.checkpoints.memory import WINDOW, cuts
from agents.toolchain import find
from tests.agents.checkpoints.look import look

pytestmark = [pytest.mark.criu, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
WORK = """
import os, sys
data = os.urandom(20_000_000)
more = []
print("ready", flush=True)
for line in sys.stdin:
    more.append(os.urandom(200_000))
    print("more", flush=True)
"""


@pytest.fixture
def criu() -> Path:
    prefix = os.environ.get("TIDEPOOL_NODE_PREFIX", ROOT / ".tidepool" / "node")
    found = find(Path(prefix)).criu
    if found is None or os.geteuid() != 0:
        pytest.skip("needs root and CRIU >= 4.2: run `make node`")
    return found


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, "-c", WORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    with started:
        assert started.stdout
        assert started.stdout.readline() == "ready\n"
        yield started
        started.kill()


def dump(criu: Path, pid: int, images: Path) -> None:
    images.mkdir()
    command = [str(criu), "dump", f"--tree={pid}", f"--images-dir={images}", "--leave-running"]
    command += ["--network-lock=skip", "--shell-job", "--log-file=dump.log"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (images / "dump.log").read_text()[-2000:]


def test_a_later_dump_of_a_process_is_mostly_old(
    criu: Path, process: subprocess.Popen[str], store: Store, workspace: Path, tmp_path: Path
) -> None:
    assert process.stdin
    assert process.stdout
    dump(criu, process.pid, tmp_path / "1")
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "more\n"
    dump(criu, process.pid, tmp_path / "2")
    for images in (tmp_path / "1", tmp_path / "2"):
        understood = cuts(images, WINDOW)
        assert set(understood) == {path.name for path in images.glob("pages-*.img")}
        assert max(max(lengths) for lengths in understood.values()) <= 1.5 * WINDOW
    first = store_image(store, tmp_path / "1", workspace)
    later = store_image(store, tmp_path / "2", workspace)
    assert first.bytes_new > 20_000_000
    assert later.bytes_new < 0.3 * later.bytes_raw
    fetch_image(store, later.manifest_key, tmp_path / "again", tmp_path / "w")
    assert look(tmp_path / "again") == look(tmp_path / "2")
