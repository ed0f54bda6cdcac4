"""What a killed test run leaves is gone when the next one begins, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from agents.containers import netns
from tests.fleets.conftest import needs_hosts
from tests.fleets.fleet import HostFleet
from tests.fleets.sweeping import note, sweep
from tests.processes import with_parent
from tests.product import ROOT, wait_for

MAKE = """
import sys, time
from pathlib import Path
from tests.fleets.fleet import HostFleet
from tests.fleets.sweeping import note
fleet = HostFleet(Path(sys.argv[1]), ["host-a"])
fleet.switch.__enter__()
note(fleet)
print(fleet.switch.bridge, flush=True)
time.sleep(600)
"""


def links() -> list[str]:
    return [path.name for path in Path("/sys/class/net").iterdir()]


def test_a_dead_runs_hosts_are_removed_and_a_living_ones_are_not(tmp_path: Path) -> None:
    needs_hosts()
    ours = HostFleet(tmp_path / "ours", ["host-a"])
    with ours.switch:
        note(ours)
        command = [sys.executable, "-c", MAKE, str(tmp_path / "theirs")]
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, preexec_fn=with_parent()
        ) as other:
            assert other.stdout is not None
            bridge = other.stdout.readline().strip()
            other.kill()
        place = tmp_path / "theirs" / "hosts" / "host-a"
        assert bridge in links()
        assert netns.kept(place)
        sweep()
        assert bridge not in links()
        assert not netns.kept(place)
        assert ours.switch.bridge in links()
        assert netns.kept(ours.host("host-a").place)


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = (
        "import subprocess, sys; from tests.processes import with_parent\n"
        "p = subprocess.Popen(['sleep', '600'], preexec_fn=with_parent())\n"
        f"open({str(child)!r}, 'w').write(str(p.pid)); p.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT) as parent:
        pid = int(wait_for(lambda: child.exists() and child.read_text(), "the child"))
        parent.kill()

    def ended() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"

    wait_for(ended, "the child to end")
