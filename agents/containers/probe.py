"""What containers can do on this node, found by doing it once."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path

from agents.drivers.base import Driver, DriverError, Task
from agents.protocol import Ability, Network

COMMAND = ("/bin/sleep", "infinity")
"""Nothing that forks: it is frozen as soon as it is started."""
NUMBER = 0xFFFFFF
"""The network number of the trial; the portal gives out smaller ones."""


def obstacle_to_run(runc: Path | None, missing: tuple[str, ...], cgroups_reason: str) -> str:
    """Why no container can run here; empty when nothing stands in the way."""
    if os.geteuid() != 0:
        return "containers need root: the agent runs as an ordinary user"
    if runc is None:
        return "; ".join(missing)
    return cgroups_reason


def abilities(driver: Driver, state: Path, *, versions: str, obstacle: str) -> dict[str, Ability]:
    """Start, freeze, dump and restore a small container; remember for this boot that it went well.

    ``obstacle`` says why dumping needs not be tried.
    """
    memory = state / "probe.json"
    stamp = f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {versions} {obstacle}"
    try:
        known = json.loads(memory.read_text())
        if known["stamp"] == stamp:
            return {name: Ability(able=not why, reason=why) for name, why in known["why"].items()}
    except (OSError, ValueError, KeyError):
        pass
    why = _try(driver, state / "probe", obstacle)
    if set(why.values()) <= {"", obstacle}:
        # Other failures may pass: the next start tries again.
        memory.write_text(json.dumps({"stamp": stamp, "why": why}))
    return {name: Ability(able=not reason, reason=reason) for name, reason in why.items()}


def unable(reason: str) -> dict[str, Ability]:
    """The answer of a node that cannot run containers at all."""
    names = ("run", "pause", "checkpoint", "migrate", "network")
    return dict.fromkeys(names, Ability(able=False, reason=reason))


def _try(driver: Driver, folder: Path, obstacle: str) -> dict[str, str]:
    (folder / "workspace").mkdir(parents=True, exist_ok=True)
    task = Task(
        key=f"probe-{uuid.uuid4().hex[:8]}",
        folder=folder,
        output=folder / "output",
        command=COMMAND,
        environment={},
        cpus=1.0,
        network=Network(number=NUMBER, address="10.77.0.1/24"),
    )
    why = dict.fromkeys(("run", "pause", "checkpoint", "migrate", "network"), "")
    try:
        try:
            driver.start(task)
        except (DriverError, OSError) as error:
            return dict.fromkeys(why, str(error))
        why |= _try_to_move(driver, task, folder / "images", obstacle)
    finally:
        driver.remove(task)
        shutil.rmtree(folder, ignore_errors=True)
    return why


def _try_to_move(driver: Driver, task: Task, images: Path, obstacle: str) -> dict[str, str]:
    try:
        driver.freeze(task)
    except (DriverError, OSError) as error:
        return dict.fromkeys(("pause", "checkpoint", "migrate"), str(error))
    if obstacle:
        return dict.fromkeys(("checkpoint", "migrate"), obstacle)
    try:
        driver.dump(task, images)
        driver.remove(task)
        driver.restore(task, images)
        driver.thaw(task)
    except (DriverError, OSError) as error:
        return dict.fromkeys(("checkpoint", "migrate"), str(error))
    return {}
