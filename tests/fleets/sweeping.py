"""Remove what is left of fleets whose test run was killed: containers, namespaces, wires."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from pyroute2 import IPRoute

from tests.fleets.hosts import Switch, drop

if TYPE_CHECKING:
    from tests.fleets.fleet import HostFleet

NOTE = "fleet.json"
BRIDGE = re.compile(r"tps(\d+)[a-z]")


def note(fleet: HostFleet) -> None:
    """Write down whose fleet this is, beside its hosts."""
    us = psutil.Process()
    told = {
        "pid": us.pid,
        "since": us.create_time(),
        "bridge": fleet.switch.bridge,
        "names": list(fleet.switch.hosts),
    }
    folder = fleet.home / "hosts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NOTE).write_text(json.dumps(told))


def sweep() -> None:
    """Remove the fleets of processes that are gone."""
    for folder in _folders():
        with contextlib.suppress(FileNotFoundError):
            _remove(folder, json.loads((folder / NOTE).read_text()))
    with IPRoute() as routes:
        names = [link.get("ifname") for link in routes.get_links()]
    for name in names:
        found = BRIDGE.match(name)
        if found and not psutil.pid_exists(int(found[1])):
            drop(name)


def _folders() -> set[Path]:
    """Folders with the namespaces of hosts that are there."""
    mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    places = (Path(words[4]) for words in mounts if "nsfs" in words)
    return {place.parent for place in places if place.parent.name == "hosts"}


def _remove(folder: Path, told: dict[str, object]) -> None:
    from tests.fleets.fleet import HostFleet

    with contextlib.suppress(psutil.NoSuchProcess):
        if psutil.Process(int(str(told["pid"]))).create_time() == told["since"]:
            return
    names = [str(name) for name in told["names"]]  # type: ignore[attr-defined]
    fleet = HostFleet(folder.parent, names)
    fleet.switch = Switch(folder, names, bridge=str(told["bridge"]))
    fleet.clear()
    fleet.switch.remove()
