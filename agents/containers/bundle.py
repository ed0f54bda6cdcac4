"""Writes a task down as an OCI bundle: what the container is, sees and may do."""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.containers.host import Host, nvidia_devices
from agents.containers.seccomp import profile
from agents.drivers.base import DriverError, Task

WORKSPACE = "/workspace"
GHOST_BYTES = 1 << 30
"""Largest deleted file that is still open and can be dumped."""
FIRST_USER = 61_184
USERS = 4_336
"""User ids that systemd keeps for users made on the fly: no account of the machine lies there."""
OPEN_FILES = 65_536
CPU_PERIOD_US = 100_000
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RESOLVER = "/etc/resolv.conf"
UPSTREAM = Path("/run/systemd/resolve/resolv.conf")
"""Where a resolver on the node, out of containers' reach, keeps the servers that it asks."""
MASKED = ("/proc/kcore", "/proc/keys", "/proc/sched_debug", "/proc/timer_list")
READ_ONLY = ["bind", "ro", "nosuid", "nodev"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where on this node a container is made."""

    bundle: Path
    cgroup: str
    """Path below each controller's root, absolute."""
    netns: Path

    @property
    def hosts(self) -> Path:
        """The container's own /etc/hosts: libraries look their own name up."""
        return self.bundle / "hosts"

    @property
    def resolver(self) -> Path:
        """The container's own resolv.conf; empty when it may not go outside: nothing waits then."""
        return self.bundle / "resolv.conf"


def user_of(key: str) -> int:
    """The job's own unprivileged user and group id, the same on every node."""
    found = re.match(r"j(\d+)", key)
    return FIRST_USER + int(found[1] if found else 0) % USERS


def group_of(fleet: str, agent: str) -> str:
    """The control group below which an agent's containers lie."""
    return "tidepool/" + re.sub(r"[^a-zA-Z0-9_-]", "-", f"{fleet}-{agent}".strip("-"))


def hostname_of(key: str) -> str:
    """The task's key without its epoch: a restored container keeps its first name."""
    return re.sub(r"-e\d+$", "", key)


def write(config: Mapping[str, Any], task: Task, place: Place, host: Host) -> None:
    """Put the bundle's folder on disk: config.json, hosts, and the root with its links."""
    root = place.bundle / "rootfs"
    root.mkdir(parents=True, exist_ok=True)
    for name, target in host.links:
        link = root / name.lstrip("/")
        if not link.is_symlink():
            link.symlink_to(target)
    address = task.network.address.partition("/")[0] if task.network else "127.0.0.1"
    names = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
    place.hosts.write_text(f"{names}{address} {hostname_of(task.key)}\n")
    outside = task.network is not None and task.network.internet
    place.resolver.write_text(name_servers() if outside else "")
    tell_criu(place)
    (place.bundle / "config.json").write_text(json.dumps(config))


def tell_criu(place: Place, *, leave_stopped: bool = False) -> None:
    """Write the options that runc cannot pass on. The gate is the lock of the network."""
    options = [
        "network-lock skip",
        f"ghost-limit {GHOST_BYTES}",
        "link-remap",
        "manage-cgroups=ignore",
    ]
    if leave_stopped:
        options.append("leave-stopped")
    (place.bundle / "criu.conf").write_text("\n".join(options) + "\n")


def configure(task: Task, place: Place, host: Host) -> dict[str, Any]:
    """The OCI configuration of a task that starts from the beginning."""
    user = user_of(task.key)
    # Without CAP_SYS_RESOURCE nobody may go beyond the limit that they have.
    files = min(OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return {
        "ociVersion": "1.0.2",
        "hostname": hostname_of(task.key),
        "root": {"path": "rootfs", "readonly": True},
        "process": {
            "terminal": False,
            "user": {"uid": user, "gid": user},
            "args": list(task.command),
            "env": [f"{name}={value}" for name, value in environment(task).items()],
            "cwd": WORKSPACE,
            "capabilities": {},
            "noNewPrivileges": True,
            "oomScoreAdj": 500,
            "rlimits": [
                {"type": "RLIMIT_NOFILE", "hard": files, "soft": files},
                {"type": "RLIMIT_CORE", "hard": 0, "soft": 0},
            ],
        },
        "mounts": mounts(task, place, host),
        "annotations": {"org.criu.config": str(place.bundle / "criu.conf")},
        "linux": {
            "cgroupsPath": place.cgroup,
            "namespaces": [
                *({"type": kind} for kind in ("pid", "mount", "ipc", "uts")),
                {"type": "network", "path": str(place.netns)},
            ],
            "resources": resources(task),
            "devices": nvidia_devices(task.gpus),
            "seccomp": profile(),
            "maskedPaths": list(MASKED),
        },
    }


def reconfigure(dumped: Mapping[str, Any], task: Task, place: Place, host: Host) -> dict[str, Any]:
    """The configuration of a task that is restored: as it was dumped, at its new place.

    CRIU matches mounts by their places in the container, so the list is the dumped one. Raises
    DriverError ``restore-failed`` when this node lacks one of the folders.
    """
    config = json.loads(json.dumps(dumped))
    own = {
        Path(WORKSPACE).name: task.folder / "workspace",
        place.hosts.name: place.hosts,
        place.resolver.name: place.resolver,
    }
    for mount in config["mounts"]:
        if mount["type"] != "bind":
            continue
        place_in = mount["destination"]
        source = Path(os.path.realpath(place_in))
        if mount["source"] != place_in:
            source = own.get(Path(place_in).name, source)
        mount["source"] = str(source)
        if source.parent != place.bundle and not source.exists():
            raise DriverError(
                "restore-failed",
                f"This node has no {source}, which the job was using: install the same programs "
                "at the same path, or let the job go to another node.",
            )
    fresh = configure(task, place, host)
    config["annotations"] = fresh["annotations"]
    for part in ("cgroupsPath", "namespaces", "resources", "devices", "seccomp"):
        config["linux"][part] = fresh["linux"][part]
    return dict(config)


def name_servers() -> str:
    """The node's name servers, as a resolv.conf."""
    for path in (UPSTREAM, Path(RESOLVER)):
        if path.exists():
            return path.read_text()
    return ""


def environment(task: Task) -> dict[str, str]:
    """The task's variables over defaults: this interpreter first in PATH, output not held back."""
    defaults = {
        "PATH": f"{Path(sys.prefix, 'bin')}:{SYSTEM_PATH}",
        "HOME": WORKSPACE,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }
    if task.gpus:
        defaults |= {"CUDA_VISIBLE_DEVICES": ",".join(task.gpus)}
    return defaults | dict(task.environment)


def mounts(task: Task, place: Place, host: Host) -> list[dict[str, Any]]:
    """Every mount below the read-only root, outer before inner.

    Each tmpfs costs some ms at every dump, because CRIU packs it with tar: so they are few.
    """
    private = ["nosuid", "nodev"]
    return [
        _mount("/proc", "proc", "proc", ["nosuid", "noexec", "nodev"]),
        _mount("/dev", "tmpfs", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=64k"]),
        _mount(
            "/dev/pts", "devpts", "devpts", ["nosuid", "noexec", "newinstance", "ptmxmode=0666"]
        ),
        _mount("/dev/shm", "tmpfs", "shm", [*private, "mode=1777"]),
        _mount("/sys", "sysfs", "sysfs", ["nosuid", "noexec", "nodev", "ro"]),
        _mount("/tmp", "tmpfs", "tmpfs", [*private, "mode=1777"]),
        # CRIU cannot mount what a symbolic link stands for.
        *(_mount(folder, "bind", os.path.realpath(folder), READ_ONLY) for folder in host.folders),
        *(_mount(name, "bind", str(source), READ_ONLY) for name, source in names(place)),
        _mount(WORKSPACE, "bind", str(task.folder / "workspace"), ["bind", "rw", *private]),
    ]


def names(place: Place) -> list[tuple[str, Path]]:
    """The files about names that the container has of its own, over those that are there."""
    wanted = [("/etc/hosts", place.hosts), (os.path.realpath(RESOLVER), place.resolver)]
    return [
        (path, own) for path, own in wanted if not path.startswith("/etc") or Path(path).exists()
    ]


def resources(task: Task) -> dict[str, Any]:
    """Limits of memory, processes and cores, and the devices that may be opened."""
    limits: dict[str, Any] = {
        "pids": {"limit": task.pids},
        "devices": [
            {"allow": False, "access": "rwm"},
            *(
                {
                    "allow": True,
                    "type": "c",
                    "major": node["major"],
                    "minor": node["minor"],
                    "access": "rw",
                }
                for node in nvidia_devices(task.gpus)
            ),
        ],
    }
    cpu: dict[str, Any] = {}
    if task.cpus > 0:
        quota = max(1000, int(task.cpus * CPU_PERIOD_US))
        cpu |= {"quota": quota, "period": CPU_PERIOD_US}
    if task.cpuset:
        cpu["cpus"] = task.cpuset
    if cpu:
        limits["cpu"] = cpu
    if task.memory:
        limits["memory"] = {"limit": task.memory}
    return limits


def _mount(destination: str, kind: str, source: str, options: list[str]) -> dict[str, Any]:
    return {"destination": destination, "type": kind, "source": source, "options": options}
