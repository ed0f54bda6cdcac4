"""The real product over several hosts of this machine, and what it has left on them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from agents.choice import choose_devices, choose_driver
from agents.config import read_config
from agents.containers import netns
from agents.node import Node
from tests.fleets.hosts import Host, Switch
from tests.fleets.sweeping import note, sweep
from tests.product import Product

LEASE_S = 12
"""Short, so that tests need not wait long; long enough for a machine with other things to do."""
DEVICES = 2
"""On every host."""


class HostFleet(Product):
    """A portal and an agent on each of ``names``. A context manager: it removes everything."""

    def __init__(
        self, home: Path, names: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        told = {
            "TIDEPOOL_NODE_LEASE": str(LEASE_S),
            "TIDEPOOL_DEVICES": f"cpu:{DEVICES}",
            "PYTHONUNBUFFERED": "1",
            **(environment or {}),
        }
        super().__init__(home, told)
        self.switch = Switch(home / "hosts", names)
        self.environment["TIDEPOOL_HOSTS"] = f"localhost,127.0.0.1,{self.switch.address}"
        hosts = [f"{h.name}={h.place}={h.address}" for h in self.switch.hosts.values()]
        self.command = ("-m", "tests.fleets.up", self.switch.address, *hosts)

    def __enter__(self) -> Self:
        sweep()
        with contextlib.ExitStack() as stack:
            note(self)
            stack.enter_context(self.switch)
            stack.callback(self.clear)
            stack.callback(self.stop)
            self.start()
            self._all = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._all.__exit__(kind, error, trace)

    def host(self, name: str) -> Host:
        return self.switch.hosts[name]

    def state(self, name: str) -> Path:
        """The folder of a host's agent."""
        return self.home / "agents" / name

    def node(self, name: str) -> Node:
        """The agent's own view of its node."""
        host = self.host(name)
        told = {
            "TIDEPOOL_PORTAL": f"http://{self.switch.address}:{self.port}",
            "TIDEPOOL_NODE": name,
            "TIDEPOOL_NODE_TOKEN": "none",
            "TIDEPOOL_AGENT_STATE": str(self.state(name)),
            "TIDEPOOL_STORE": str(self.home / "store"),
            "TIDEPOOL_NODE_PREFIX": self.environment["TIDEPOOL_NODE_PREFIX"],
            "TIDEPOOL_DRIVER": "container",
            "TIDEPOOL_DEVICES": f"cpu:{DEVICES}",
            "TIDEPOOL_UNDERLAY": host.address,
        }
        config = read_config([], told)
        return Node(config=config, driver=choose_driver(config), devices=choose_devices(config))

    def containers(self, name: str) -> list[str]:
        """Keys of the containers on a host."""
        folder = self.state(name) / "containers" / "tasks"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def leftovers(self) -> list[str]:
        """Everything of jobs that is on any host: containers, interfaces, mounts and groups."""
        found = []
        for host in self.switch.hosts.values():
            found += [f"{host.name}: container {key}" for key in self.containers(host.name)]
            found += [f"{host.name}: interface {name}" for name in host.interfaces()]
            found += [f"{host.name}: group {path}" for path in self.groups(host.name)]
        agents = str(self.home / "agents")
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        return found + [f"mount {line.split()[4]}" for line in mounts if agents in line]

    def groups(self, name: str) -> list[Path]:
        """Control groups of replicas on a host."""
        word = self.state(name) / "name"
        own = f"tidepool/*{name}-{word.read_text().strip()}" if word.exists() else "none"
        root = Path("/sys/fs/cgroup")
        tops = [*root.glob(own), *root.glob(f"*/{own}")]
        return [path for top in tops for path in top.iterdir() if path.is_dir()]

    def halt(self, name: str) -> None:
        """Stop a host as a power cut does: its wire is dead, its processes end at once.

        Its agent is started again as after a power-up; ``host(name).join()`` gives it the wire.
        """
        self.host(name).cut()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid(name), signal.SIGKILL)
        for group in self.groups(name):
            with contextlib.suppress(OSError):
                pids = [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)

    def clear(self) -> None:
        """Remove whatever jobs have left on the hosts; the product must be stopped."""
        for name, host in self.switch.hosts.items():
            if self.containers(name):
                netns.inside(host.place, lambda name=name: self._clear(name))  # type: ignore[misc]

    def _clear(self, name: str) -> None:
        node = self.node(name)
        for key in node.driver.leftovers():
            node.driver.remove(node.bare_task(key))
        node.driver.close()
